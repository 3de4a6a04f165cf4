package embedded

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// oldestLandlock is Linux 5.19. Before it a confined process cannot rename a file into another directory, which the
// engine does with every part it detaches.
const oldestLandlock = 2

// Confines reports whether the kernel can hold an engine that this process starts to its own files and ports.
func Confines() bool {
	version, err := llsyscall.LandlockGetABIVersion()
	return err == nil && version >= oldestLandlock
}

// confine restricts the calling thread for good, which it locks, and with it what that thread executes next. Go's other
// threads stay as they are: the caller becomes another program at once.
func confine(a reach) error {
	if !Confines() {
		return nil // the parent warns of it
	}
	a = a.resolved()
	// What this process was given without knowing it is not for the engine either.
	if err := unix.CloseRange(lifelineFD+2, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("confining the engine: closing files: %w", err)
	}
	if err := pin(append(a.Files, a.Read...)); err != nil {
		return err
	}
	rules := []landlock.Rule{
		landlock.RWDirs(a.Write...).WithRefer(), landlock.RODirs(a.Read...),
		landlock.ROFiles(a.Files...), landlock.RWFiles(a.Devices...),
	}
	for _, port := range a.Ports {
		rules = append(rules, landlock.BindTCP(port))
	}
	// V7 is what it was tried with: files, TCP, devices, signals and abstract sockets. Older kernels bound fewer of them.
	fd, flags, err := landlock.V7.BestEffort().NewRulesetFD(rules...)
	if err != nil {
		return fmt.Errorf("writing the rules of the engine's confinement: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confining the engine: %w", err)
	}
	if err := llsyscall.LandlockRestrictSelf(fd, flags); err != nil {
		return fmt.Errorf("confining the engine: %w", err)
	}
	return withoutSQLite()
}

// pin keeps the files of /proc open, over the next exec too. A rule holds for an inode, and of a file of /proc that
// nothing has open the kernel may make another at any time.
func pin(files []string) error {
	for _, f := range files {
		if !strings.HasPrefix(f, "/proc/") || f == selfExe {
			continue
		}
		if _, err := unix.Open(filepath.Clean(f), unix.O_PATH, 0); err != nil {
			return fmt.Errorf("confining the engine: opening %s: %w", f, err)
		}
	}
	return nil
}
