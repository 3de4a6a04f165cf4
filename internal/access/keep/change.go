package keep

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/internal/access"
)

// Change replaces a file of tokens by what f makes of it. Of several at once each sees what the one before wrote.
func Change(path string, f func([]access.Token) ([]access.Token, error)) (err error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the file of tokens: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	all, err := ReadFile(path)
	if err != nil {
		return err
	}
	if all, err = f(all); err != nil {
		return err
	}
	if len(all) > access.MaxTokens {
		return fmt.Errorf("%s would hold %d tokens, at most %d: remove those that ended, `almanac token rm NAME`", path, len(all), access.MaxTokens)
	}
	return WriteFile(path, all)
}
