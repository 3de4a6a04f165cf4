package embedded

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The table function sqlite() opens its file before the engine looks at the account's rights, and opening creates it: in
// the engine's own directory, which Landlock must leave to it, an empty file of any name. Some of these keep the engine from
// starting again. SQLite alone asks to create a file that is not a link (O_CREAT with O_NOFOLLOW, its os_unix.c), so a
// filter of system calls refuses that. The engine's own files are opened without O_NOFOLLOW.

// withoutSQLite has the calling thread, and what it executes next, refuse what only SQLite asks for. It needs
// PR_SET_NO_NEW_PRIVS. A kernel without such filters is left as it is.
func withoutSQLite() error {
	const creates = unix.O_CREAT | unix.O_NOFOLLOW
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// Offsets in struct seccomp_data (linux/seccomp.h): nr 0, args from 16 with 8 bytes each, the low half first on the
	// little-endian machines that there are engines for.
	const flagsOfOpenat = 16 + 2*8
	filter := []unix.SockFilter{
		load(0),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT, Jf: 4},
		load(flagsOfOpenat),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: creates},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: creates, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0) //nolint:gosec // the kernel takes no other pointer
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("confining the engine: a filter of system calls: %w", err)
	}
	return nil
}
