package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/schemas"
)

// A data directory and a registry speak of one number.
func TestFormatIsOne(t *testing.T) {
	t.Parallel()
	if embedded.FormatVersion != schemas.Format {
		t.Errorf("directories have format %d, registries %d", embedded.FormatVersion, schemas.Format)
	}
}

func TestDataDirHasOneOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "data")
	d, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	_, err = embedded.OpenDataDir(embedded.DataDirConfig{Path: path})
	if !errors.Is(err, embedded.ErrDirBusy) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("second open = %v, want ErrDirBusy naming process %d", err, os.Getpid())
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	again, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestDataDirRefusesOthers(t *testing.T) {
	t.Parallel()
	foreign := t.TempDir()
	writeText(t, filepath.Join(foreign, "thesis.tex"), "years of work")
	if _, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: foreign}); !errors.Is(err, embedded.ErrDirForeign) ||
		!strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("foreign directory: %v, want ErrDirForeign naming the file", err)
	}
	for _, other := range []int{embedded.FormatVersion - 1, embedded.FormatVersion + 1} {
		dir := t.TempDir()
		writeText(t, filepath.Join(dir, "VERSION"), fmt.Sprintln(other))
		if _, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: dir}); !errors.Is(err, embedded.ErrDirVersion) ||
			!strings.Contains(err.Error(), fmt.Sprintf("%q", fmt.Sprint(other))) {
			t.Errorf("format %d: %v, want ErrDirVersion naming it", other, err)
		}
	}
	if _, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: t.TempDir(), MinFreeBytes: 1 << 60}); !errors.Is(err, embedded.ErrDiskSpace) {
		t.Errorf("full disk: %v, want ErrDiskSpace", err)
	}
	if _, err := embedded.OpenDataDir(embedded.DataDirConfig{}); err == nil {
		t.Error("no path: no error")
	}
}

func TestAddressesAreBelievedWhileSomebodyRuns(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	if _, err := embedded.ReadAddresses(path); !errors.Is(err, embedded.ErrNoAddresses) {
		t.Errorf("before: %v, want ErrNoAddresses", err)
	}
	d, err := embedded.OpenDataDir(embedded.DataDirConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.ReadAddresses(path); !errors.Is(err, embedded.ErrNoAddresses) {
		t.Errorf("while starting: %v, want ErrNoAddresses", err)
	}
	want := embedded.Addresses{NATS: "nats://127.0.0.1:1", User: "almanac", Password: "p&<>", PID: os.Getpid()}
	if err := embedded.WriteAddresses(path, want); err != nil {
		t.Fatal(err)
	}
	if got, err := embedded.ReadAddresses(path); err != nil || got != want {
		t.Errorf("running: %+v, %v; want %+v", got, err, want)
	}
	info, err := os.Stat(filepath.Join(path, "addresses.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("addresses.json: %v, %v; want mode 0600", info.Mode(), err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// A killed owner leaves its addresses behind; they must not be believed.
	if err := embedded.WriteAddresses(path, want); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.ReadAddresses(path); !errors.Is(err, embedded.ErrNoAddresses) {
		t.Errorf("after: %v, want ErrNoAddresses", err)
	}
}
