package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/backup/buckettest"
)

// A bucket of an object store takes backups as a directory does: one that is killed is run again and takes up what it sent, a second one sends what is new, a bit
// that differs and a file that is gone are named, and what is restored is proven. The secret is in no output.
func TestBackupIntoABucket(t *testing.T) {
	t.Parallel()
	bucket := buckettest.Start(t)
	b := newBox(t)
	variable, path := buckettest.Credentials(t, buckettest.Secret)
	b.env = append(b.env, variable+"="+path, envPrefix+"S3_ENDPOINT="+bucket.URL, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_PROFILE=")
	b.up()
	b.ok(lines(500), "send", "app")
	b.inTheEnd(500)
	const dest = "s3://" + buckettest.Name + "/of/ours"

	// Killed while a file goes up.
	var puts atomic.Int64
	there := make(chan struct{})
	bucket.Fail(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if buckettest.Of(r, http.MethodPut, "/objects/") && puts.Add(1) >= 5 {
			if puts.Load() == 5 {
				close(there)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	})
	killed := b.background("backup", dest)
	select {
	case <-there:
	case <-killed.done:
		t.Fatalf("backup ended with %d: %s", killed.code, killed.stderr())
	}
	killed.stop(syscall.SIGKILL)
	bucket.Fail(nil)
	for _, name := range bucket.Files("") {
		if strings.HasSuffix(name, ".backup") {
			t.Errorf("a backup that was killed: %s", name)
		}
	}
	bucket.Remove("of/ours/LOCK") // it would be free by itself, later

	first := decoded[backedUp](b, "backup", dest, "-o", "json")
	if first.NewBytes >= first.Bytes || first.Rows != 500 {
		t.Errorf("run again: %+v", first)
	}
	b.ok(lines(20), "send", "app")
	b.inTheEnd(520)
	second := decoded[backedUp](b, "backup", dest, "--keep", "1", "-o", "json")
	if second.NewBytes >= second.Bytes || second.Rows != 520 {
		t.Errorf("a second backup: %+v after %+v", second, first)
	}
	var manifest string
	var objects []string
	for _, name := range bucket.Files("of/ours/") {
		switch {
		case strings.HasSuffix(name, ".backup") && manifest == "":
			manifest = name
		case strings.Contains(name, "/objects/"):
			objects = append(objects, name)
		default:
			t.Errorf("there is %s", name)
		}
	}
	if filepath.Base(manifest) != second.Name {
		t.Fatalf("there is the backup %s", manifest)
	}

	b.ok("", "restore", dest, "--check")
	b.ok("", "restore", dest+"/"+second.Name, "--check")
	into := filepath.Join(t.TempDir(), "restored")
	for _, name := range []string{manifest, objects[len(objects)/2]} {
		was := bucket.Read(name)
		bad := append([]byte(nil), was...)
		bad[len(bad)/2] ^= 4
		bucket.Write(name, bad)
		if r := b.run("", "restore", dest, "--yes", "--data", into); r.code != exitFailed || !strings.Contains(r.err, filepath.Base(name)) {
			t.Errorf("a bit of %s: exit %d, %s", name, r.code, r.err)
		}
		bucket.Write(name, was)
	}
	was := bucket.Read(objects[0])
	bucket.Remove(objects[0])
	if r := b.run("", "restore", dest, "--yes", "--data", into); r.code != exitFailed || !strings.Contains(r.err, filepath.Base(objects[0])) {
		t.Errorf("a file that is gone: exit %d, %s", r.code, r.err)
	}
	bucket.Write(objects[0], was)

	wrong := &box{t: t, dir: b.dir, env: append([]string(nil), b.env...)}
	variable, path = buckettest.Credentials(t, "another-secret")
	wrong.env = append(wrong.env, variable+"="+path)
	for _, args := range [][]string{{"backup", dest}, {"restore", dest, "--check"}} {
		if r := wrong.run("", args...); r.code != exitFailed || !strings.Contains(r.err, "refuses these credentials") || strings.Contains(r.err, "another-secret") {
			t.Errorf("%v with other credentials: exit %d, %s", args, r.code, r.err)
		}
	}

	r := b.run("", "restore", dest, "--yes", "--data", into)
	if r.code != exitOK {
		t.Fatalf("restore: exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, r.err, "restored: 520 rows", "proven: ", "as of ")
	if strings.Contains(r.err+r.out, buckettest.Secret) {
		t.Error("it prints the secret")
	}
}
