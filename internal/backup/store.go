package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Store is a place with backups.
type Store struct {
	place Place
	held  hold
	there map[string]int64 // sizes of the objects, by digest
	// committed is the name of the backup that was written.
	committed string

	// Added is how many bytes were new to it, and Freed how many Keep removed.
	Added, Freed int64
}

const (
	objectsDir = "objects"
	lockName   = "LOCK"
)

// OpenStore opens a place to write into it. A directory is made where it is missing. ErrBusy: another process does.
func OpenStore(ctx context.Context, p Place) (*Store, error) {
	s := &Store{place: p, there: map[string]int64{}}
	var err error
	if s.held, err = p.hold(ctx); err != nil {
		return nil, err
	}
	err = p.list(ctx, objectsDir, true, func(name string, size int64) { s.there[path.Base(name)] = size })
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// ReadStore opens a place to read it.
func ReadStore(p Place) *Store { return &Store{place: p} }

// Close lets the place go.
func (s *Store) Close(ctx context.Context) error {
	if s.held == nil {
		return nil
	}
	return s.held.release(ctx)
}

// At is how a file is called outside.
func (s *Store) At(name string) string { return s.place.At(name) }

func (o Object) name() string { return path.Join(objectsDir, o.SHA256[:2], o.SHA256) }

// Put keeps bytes as an object.
func (s *Store) Put(ctx context.Context, data []byte) (Object, error) {
	o := Object{SHA256: digest(data), Size: int64(len(data))}
	if s.has(o) {
		return o, nil
	}
	return o, s.write(ctx, o, bytes.NewReader(data))
}

// PutFile keeps a file as an object.
func (s *Store) PutFile(ctx context.Context, path string) (Object, error) {
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
	return o, s.write(ctx, o, f)
}

// has reports whether an object is there, by its size: objects get their names once they are whole.
func (s *Store) has(o Object) bool {
	size, ok := s.there[o.SHA256]
	return ok && size == o.Size
}

func (s *Store) write(ctx context.Context, o Object, r io.ReadSeeker) error {
	if err := s.place.put(ctx, o.name(), r, o.Size); err != nil {
		return err
	}
	s.there[o.SHA256] = o.Size
	s.Added += o.Size
	return nil
}

// Commit writes the manifest: from then on there is a backup.
func (s *Store) Commit(ctx context.Context, m *Manifest) error {
	text, err := m.Encode()
	if err == nil {
		err = s.held.still(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.place.put(ctx, m.Name(), bytes.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	s.committed = m.Name()
	return nil
}

// Manifests are the names of the backups, the oldest first.
func (s *Store) Manifests(ctx context.Context) ([]string, error) {
	var names []string
	err := s.place.list(ctx, "", false, func(name string, _ int64) {
		if strings.HasSuffix(name, Suffix) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names, err
}

// Manifest reads the manifest of a backup.
func (s *Store) Manifest(ctx context.Context, name string) (*Manifest, error) {
	r, err := s.place.open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) { // the place named it
		return nil, fmt.Errorf("%w: %s no longer has %s: %s", ErrRemoved, s.At(""), name, anotherBackup)
	}
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("backup: reading %s: %w", s.At(name), err)
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
func (s *Store) Newest(ctx context.Context) (*Manifest, error) {
	names, err := s.Manifests(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return s.Manifest(ctx, names[len(names)-1])
}

// Copy writes an object to w, and compares it with its digest. What was written is not to be used unless it returns nil.
func (s *Store) Copy(ctx context.Context, w io.Writer, o Object) error {
	at := s.At(o.name())
	r, err := s.place.open(ctx, o.name())
	if errors.Is(err, ErrObjectStore) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer func() { _ = r.Close() }()
	h := sha256.New()
	to := &writing{w: w}
	n, err := io.Copy(io.MultiWriter(h, to), r)
	switch {
	case to.err != nil:
		return fmt.Errorf("backup: %w", to.err)
	case errors.Is(err, ErrObjectStore):
		return err
	case err != nil:
		return fmt.Errorf("%w: reading %s: %w", ErrDamaged, at, err)
	case n != o.Size || hex.EncodeToString(h.Sum(nil)) != o.SHA256:
		return fmt.Errorf("%w: %s has %d bytes of another digest, want %d", ErrDamaged, at, n, o.Size)
	}
	return nil
}

// writing remembers that it was the writer that failed.
type writing struct {
	w   io.Writer
	err error
}

func (w *writing) Write(p []byte) (n int, err error) {
	if n, err = w.w.Write(p); err != nil {
		w.err = err
	}
	return n, err
}

// Read reads an object, and compares it with its digest.
func (s *Store) Read(ctx context.Context, o Object) ([]byte, error) {
	var b bytes.Buffer
	if err := s.Copy(ctx, &b, o); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Check compares every object of a backup with its digest, each once. All that differ are named.
func (s *Store) Check(ctx context.Context, m *Manifest, progress func(bytes int64)) error {
	seen := map[string]bool{}
	var bad []error
	done := int64(0)
	err := m.Objects(func(what string, o Object) error {
		if seen[o.SHA256] {
			return nil
		}
		seen[o.SHA256] = true
		err := s.Copy(ctx, io.Discard, o)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		if err != nil && len(bad) < maxNamed {
			bad = append(bad, fmt.Errorf("%s: %w", what, err))
		}
		done += o.Size
		if progress != nil {
			progress(done)
		}
		return nil
	})
	return s.removed(ctx, m, errors.Join(errors.Join(bad...), err), anotherBackup)
}

// What to do where a backup was removed while it was read: before anything was restored of it, and after.
const (
	anotherBackup  = "nothing was restored. Restore a newer one; a larger --keep leaves more time"
	removeRestored = "remove what was restored of it, and restore a newer one; a larger --keep leaves more time"
)

// removed is an error of reading a backup, or ErrRemoved where the place no longer lists that: its files are not damaged then.
func (s *Store) removed(ctx context.Context, m *Manifest, err error, remedy string) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	names, failed := s.Manifests(ctx)
	if failed != nil || slices.Contains(names, m.Name()) {
		return err
	}
	return fmt.Errorf("%w: %s no longer has %s, of which files were still to be read: %s", ErrRemoved, s.At(""), m.Name(), remedy)
}

// maxNamed bounds how many damaged files are named.
const maxNamed = 100

// Keep removes all but the newest n backups, and the objects that none of those has. A place that lists no
// backup keeps all it has: whether it names them all is not known.
func (s *Store) Keep(ctx context.Context, n int) (removed int, err error) {
	names, err := s.Manifests(ctx)
	if err != nil || n < 1 {
		return 0, err
	}
	if len(names) == 0 || s.committed != "" && !slices.Contains(names, s.committed) {
		return 0, fmt.Errorf("%w: %s does not list the backups that it has (%s is the one just made), so nothing was removed", ErrTorn, s.At(""), cmp.Or(s.committed, "none"))
	}
	used := map[string]bool{}
	for i := max(len(names)-n, 0); i < len(names); i++ {
		m, err := s.Manifest(ctx, names[i])
		if errors.Is(err, ErrFormat) {
			return 0, fmt.Errorf("%w. What it has is not known, so nothing was removed: remove that file once you need the backup no more", err)
		}
		if err != nil {
			return 0, fmt.Errorf("%w. What it has is not known, so nothing was removed: delete that file, from which nothing can be restored, and make another backup", err)
		}
		_ = m.Objects(func(_ string, o Object) error { used[o.SHA256] = true; return nil })
	}
	// Before each file: another process that has the place by now makes backups of what is there.
	remove := func(name string) error {
		if err := s.held.yet(ctx); err != nil {
			return err
		}
		return s.place.remove(ctx, name)
	}
	for _, name := range names[:max(len(names)-n, 0)] {
		if err := remove(name); err != nil {
			return removed, err
		}
		removed++
	}
	if err := s.held.still(ctx); err != nil {
		return removed, err
	}
	for sum, size := range s.there {
		if used[sum] {
			continue
		}
		if err := remove(Object{SHA256: sum}.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		delete(s.there, sum)
		s.Freed += size
	}
	return removed, nil
}
