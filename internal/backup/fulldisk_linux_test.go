package backup

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A directory on a full disk keeps what it has, and an error says what makes room. With room it takes what it did not.
func TestDirectoryOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := embeddedtest.SmallDisk(t, "512k")
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 256<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, at := t.Context(), Directory(filepath.Join(disk, "backups"))
	s, err := OpenStore(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(ctx) }()
	small := kept(t, s, "small")
	large := make([]byte, 300<<10)
	_, _ = rand.Read(large)
	_, err = s.Put(ctx, large)
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), at.At("objects")) || !strings.Contains(err.Error(), "almanac backup DEST --prune --keep N") {
		t.Errorf("a file that has no room: %v", err)
	}
	if err := walk(string(at), func(_, path string, _ os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), tempPrefix) {
			t.Errorf("%s is left", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	o, err := s.Put(ctx, large)
	if err != nil {
		t.Fatalf("with room: %v", err)
	}
	for _, o := range []Object{small, o} {
		if _, err := s.Read(ctx, o); err != nil {
			t.Error(err)
		}
	}
}
