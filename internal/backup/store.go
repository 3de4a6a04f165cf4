package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Store is a directory of backups.
type Store struct {
	dir  string
	lock *os.File

	// Added is how many bytes were new to it.
	Added int64
}

const (
	objectsDir = "objects"
	lockName   = "LOCK"
	tempPrefix = "writing-"
)

// OpenStore opens a directory to write into it, and makes it where it is missing. ErrBusy: another process does.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, objectsDir), 0o700); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	var err error
	if s.lock, err = lockFile(filepath.Join(dir, lockName)); err != nil {
		return nil, err
	}
	return s, s.sweepTemps()
}

// lockFile takes a lock that ends with the process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: another process has %s: wait for its end", ErrBusy, path)
		}
		return nil, fmt.Errorf("backup: locking %s: %w", path, err)
	}
	return f, nil
}

// ReadStore opens a directory to read it.
func ReadStore(dir string) *Store { return &Store{dir: dir} }

// Close lets the directory go.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// sweepTemps removes what a killed process was writing.
func (s *Store) sweepTemps() error {
	return filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), tempPrefix) {
			return os.Remove(path) //nolint:gosec // the directory is ours
		}
		return err
	})
}

func (s *Store) path(o Object) string {
	return filepath.Join(s.dir, objectsDir, o.SHA256[:2], o.SHA256)
}

// Put keeps bytes as an object.
func (s *Store) Put(data []byte) (Object, error) {
	o := Object{SHA256: digest(data), Size: int64(len(data))}
	if s.has(o) {
		return o, nil
	}
	return o, s.write(o, bytes.NewReader(data))
}

// PutFile keeps a file as an object.
func (s *Store) PutFile(path string) (Object, error) {
	f, err := os.Open(path)
	if err != nil {
		return Object{}, fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return Object{}, fmt.Errorf("backup: reading %s: %w", path, err)
	}
	o := Object{SHA256: hex.EncodeToString(h.Sum(nil)), Size: n}
	if s.has(o) {
		return o, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return o, fmt.Errorf("backup: reading %s: %w", path, err)
	}
	return o, s.write(o, f)
}

// has reports whether an object is there, by its size: objects get their names once they are on disk.
func (s *Store) has(o Object) bool {
	info, err := os.Stat(s.path(o))
	return err == nil && info.Size() == o.Size
}

// write gives an object its name once its bytes are on disk.
func (s *Store) write(o Object, r io.Reader) error {
	dir := filepath.Dir(s.path(o))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := writeNamed(s.path(o), r, 0o400); err != nil {
		return err
	}
	s.Added += o.Size
	return nil
}

// writeNamed writes a file that has its name only once it is whole and on disk.
func writeNamed(path string, r io.Reader, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("backup: writing %s: %w", path, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

// Commit writes the manifest: from then on there is a backup.
func (s *Store) Commit(m *Manifest) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	return writeNamed(filepath.Join(s.dir, m.Name()), bytes.NewReader(text), 0o600)
}

// Manifests are the names of the backups, the oldest first.
func (s *Store) Manifests() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Manifest reads the manifest of a backup.
func (s *Store) Manifest(name string) (*Manifest, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	m, err := Decode(name, text)
	if err != nil {
		return nil, err
	}
	if m.Name() != name {
		return nil, fmt.Errorf("%w: %s has the manifest of %s", ErrTorn, name, m.Name())
	}
	return m, nil
}

// Newest is the newest backup, nil where there is none.
func (s *Store) Newest() (*Manifest, error) {
	names, err := s.Manifests()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return s.Manifest(names[len(names)-1])
}

// Open opens an object.
func (s *Store) Open(o Object) (*os.File, error) {
	f, err := os.Open(s.path(o))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return f, nil
}

// Read reads an object, and compares it with its digest.
func (s *Store) Read(o Object) ([]byte, error) {
	data, err := os.ReadFile(s.path(o))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if digest(data) != o.SHA256 {
		return nil, fmt.Errorf("%w: %s does not have its digest", ErrDamaged, s.path(o))
	}
	return data, nil
}

// CheckObject compares an object's bytes with its digest.
func (s *Store) CheckObject(o Object) error {
	f, err := s.Open(o)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return fmt.Errorf("%w: reading %s: %w", ErrDamaged, s.path(o), err)
	}
	if n != o.Size || hex.EncodeToString(h.Sum(nil)) != o.SHA256 {
		return fmt.Errorf("%w: %s has %d bytes of another digest, want %d", ErrDamaged, s.path(o), n, o.Size)
	}
	return nil
}

// Check compares every object of a backup with its digest, each once. All that differ are named.
func (s *Store) Check(m *Manifest, progress func(bytes int64)) error {
	seen := map[string]bool{}
	var bad []error
	done := int64(0)
	_ = m.Objects(func(what string, o Object) error {
		if seen[o.SHA256] {
			return nil
		}
		seen[o.SHA256] = true
		if err := s.CheckObject(o); err != nil && len(bad) < maxNamed {
			bad = append(bad, fmt.Errorf("%s: %w", what, err))
		}
		done += o.Size
		if progress != nil {
			progress(done)
		}
		return nil
	})
	return errors.Join(bad...)
}

// maxNamed bounds how many damaged files are named.
const maxNamed = 100

// Keep removes all but the newest n backups, and the objects that none of those has.
func (s *Store) Keep(n int) (removed int, err error) {
	names, err := s.Manifests()
	if err != nil || n < 1 {
		return 0, err
	}
	used := map[string]bool{}
	for i := max(len(names)-n, 0); i < len(names); i++ {
		m, err := s.Manifest(names[i])
		if err != nil {
			return 0, fmt.Errorf("%w. What it has is not known, so nothing was removed: delete that file, from which nothing can be restored, and make another backup", err)
		}
		_ = m.Objects(func(_ string, o Object) error { used[o.SHA256] = true; return nil })
	}
	for _, name := range names[:max(len(names)-n, 0)] {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			return removed, fmt.Errorf("backup: %w", err)
		}
		removed++
	}
	return removed, filepath.WalkDir(filepath.Join(s.dir, objectsDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || used[d.Name()] {
			return err
		}
		return os.Remove(path) //nolint:gosec // the directory is ours
	})
}
