package syslog

import (
	"errors"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of SO_MEMINFO, in the order of linux/sock_diag.h.
const (
	memInfoBuffer = 1 // SK_MEMINFO_RCVBUF
	memInfoDrops  = 8 // SK_MEMINFO_DROPS
	memInfoCount  = 9
)

// kernelDrops returns how many datagrams the kernel dropped since the socket was opened, and how many bytes it may keep for it.
func kernelDrops(u *net.UDPConn) (drops, room uint32, err error) {
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var info [memInfoCount]uint32
	size := uint32(unsafe.Sizeof(info))
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // the kernel takes no other pointer
	})
	if err == nil && errno != 0 {
		err = errno
	}
	if err == nil && size < uint32(unsafe.Sizeof(info)) {
		err = errors.ErrUnsupported // before Linux 4.12
	}
	return info[memInfoDrops], info[memInfoBuffer], err
}
