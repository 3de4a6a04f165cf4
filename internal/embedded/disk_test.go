package embedded

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A file system whose mount is dead holds one question, however often it is asked. Who asks hears since when it is silent,
// with the numbers of its last answer; and it is asked again once it answers.
func TestSilentFileSystem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		var dead atomic.Bool
		back := make(chan struct{})
		d := disks{of: map[string]*disk{}, ask: func(string) (int64, int64, error) {
			asked.Add(1)
			if dead.Load() {
				<-back
			}
			return int64(asked.Load()), 100, nil
		}}
		is := func(path string, free, all int64) {
			t.Helper()
			if gotFree, gotAll, err := d.bytes(path, diskWait); gotFree != free || gotAll != all || err != nil {
				t.Errorf("%s has %d of %d, %v; want %d of %d", path, gotFree, gotAll, err, free, all)
			}
		}
		is("/a", 1, 100)
		dead.Store(true)
		began := time.Now()
		ends := make(chan error)
		for range 20 { // at once, and then one after the other
			go func() {
				_, _, err := d.bytes("/a", diskWait)
				ends <- err
			}()
		}
		silent := func(err error) {
			t.Helper()
			var s *SilentDiskError
			if !errors.As(err, &s) || s.Path != "/a" || !s.Since.Equal(began) {
				t.Errorf("a silent file system says %v", err)
			}
		}
		for range 20 {
			silent(<-ends)
		}
		for range 5 {
			free, all, err := d.bytes("/a", diskWait)
			silent(err)
			if free != 1 || all != 100 {
				t.Errorf("its last answer was 1 of 100, and %d of %d is said", free, all)
			}
		}
		if free, all, err := d.bytes("/b", diskWait); free != 0 || all != 0 || !errors.As(err, new(*SilentDiskError)) {
			t.Errorf("one that never answered has %d of %d, %v", free, all, err)
		}
		if n := asked.Load(); n != 3 {
			t.Errorf("two silent file systems were asked %d times after one answer, want 3 in all", n)
		}
		if took := time.Since(began); took != 7*diskWait {
			t.Errorf("7 waits of %s took %s", diskWait, took)
		}
		dead.Store(false)
		close(back)
		synctest.Wait()
		is("/a", 4, 100)
	})
}

// The file system of this directory answers, and one that does not exist is an error of its own.
func TestDiskBytes(t *testing.T) {
	t.Parallel()
	if free, all, err := DiskBytes(t.TempDir()); err != nil || free < 0 || all <= 0 || free > all {
		t.Errorf("%d of %d, %v", free, all, err)
	}
	if _, _, err := DiskBytes("/does/not/exist"); err == nil || errors.As(err, new(*SilentDiskError)) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
