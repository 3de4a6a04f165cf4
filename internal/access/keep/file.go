package keep

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/almanac-events/almanac/internal/access"
)

// ReadFile reads a file of tokens. One that is not there holds no tokens.
func ReadFile(path string) ([]access.Token, error) {
	text, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the file of tokens: %w", err)
	}
	all, err := access.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// WriteFile replaces a file of tokens at once: a reader sees the old one or the new one. What could not be read again is not
// written, for it would be the end of all tokens at the next start.
func WriteFile(path string, all []access.Token) error {
	text, err := access.Text(all)
	if err == nil {
		_, err = access.Parse(text)
	}
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it would have %d bytes, at most %d: remove tokens that ended, `almanac token rm NAME`", len(text), maxFile)
	}
	if err != nil {
		return fmt.Errorf("%s is left as it was: %w", path, err)
	}
	return replace(path, text)
}

// local returns the secret in a file, which is made where it is not there.
func local(path string) (string, error) {
	text, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret, _ := access.NewSecret()
		return secret, replace(path, []byte(secret+"\n"))
	}
	if err != nil {
		return "", fmt.Errorf("the local token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// ReadLocal returns the local token of a data directory's file.
func ReadLocal(path string) (string, error) {
	text, err := readPrivate(path)
	return strings.TrimSpace(string(text)), err
}

// private reports whether a file is read by those alone whom it is for: its owner or, where that is root, the group that
// root gave it to. A Secret that Kubernetes mounts is such a file, for root writes it and the pod's group reads it.
func private(mode fs.FileMode, owner uint32) bool {
	return mode&0o077 == 0 || owner == 0 && mode&0o037 == 0
}

// ownerOf is the user whose file it is.
func ownerOf(info fs.FileInfo) uint32 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid
	}
	return ^uint32(0)
}

// readPrivate reads a file that is private.
func readPrivate(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for who writes it
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file: it is read again and again", path)
	}
	if !private(info.Mode().Perm(), ownerOf(info)) {
		return nil, fmt.Errorf("%s may be read by others (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return text, err
}

// replace writes a file that only its owner may read, whole or not at all.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
