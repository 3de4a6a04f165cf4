package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// fillDisk takes the space that a disk has, until so many percent of it are used.
func fillDisk(t *testing.T, disk string, percent uint64) (free func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 1<<20); len(block) > 0; {
		var now unix.Statfs_t
		if err := unix.Statfs(disk, &now); err != nil {
			t.Fatal(err)
		}
		if percent < 100 && now.Bavail*100 <= now.Blocks*(100-percent) {
			break
		}
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

var fullDisk = regexp.MustCompile("free, less than|is full or failing")

// refusesVerbs checks that what speaks to NATS by itself ends, or says what it waits for, and names the full disk.
func refusesVerbs(t *testing.T, b *box, data string, at embedded.Addresses) {
	t.Helper()
	// More than the files have room for, and nothing that a codec makes small.
	random := make([]byte, 32<<10)
	_, _ = rand.Read(random)
	large := hex.EncodeToString(random)
	several := func(flag, of string) (args string) {
		for i := range 60 {
			args += " " + flag + " " + fmt.Sprintf(of, "n"+large[i*100:i*100+50])
		}
		return args
	}
	var wg sync.WaitGroup
	for _, c := range []struct {
		stdin string
		code  int
		args  string
	}{
		{large, exitFailed, "send app --timeout 4s"},
		{large, exitPartial, "send app --full spool --timeout 4s --spool-dir " + t.TempDir()},
		{large, exitFailed, "send app --timeout 4s --to " + at.HTTP},
		{`{"a":"` + large + `"}`, exitFailed, "docs put pages d"},
		{`{"a":"` + large + `"}`, exitFailed, "docs import pages"},
		{"", exitFailed, "timers create g t --due +1h --url http://127.0.0.1:9/ --payload {\"a\":\"" + large[:8<<10] + "\"}"},
		{"", exitFailed, "timers groups apply other" + several("--allow-host", "%s.example.com")},
		{"", exitFailed, "topics apply app" + several("--field", "%s:string")},
		{"", exitFailed, "erase app --user u --yes --reason " + large[:1000]},
	} {
		wg.Go(func() {
			r := b.run(c.stdin, strings.Split(c.args, " ")...)
			if name := c.args[:min(40, len(c.args))]; r.code != c.code || !fullDisk.MatchString(r.err) || !strings.Contains(r.err, data) {
				t.Errorf("%s: exit %d, want %d: %s", name, r.code, c.code, r.err)
			}
		})
	}
	wg.Go(func() {
		nc, err := grpc.NewClient(at.OTLPGRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = nc.Close() }()
		logs := plog.NewLogs()
		logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("x")
		_, err = plogotlp.NewGRPCClient(nc).Export(t.Context(), plogotlp.NewExportRequestFromLogs(logs))
		if status.Code(err) != codes.Unavailable || !fullDisk.MatchString(err.Error()) {
			t.Errorf("OTLP gRPC: %v", err)
		}
	})
	wg.Wait()
}

// An `up` on a disk without a free byte starts and reads; what would be stored is refused with the
// reason; with room again it is taken, without a restart.
func TestUpOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := embeddedtest.SmallDisk(t, "720m")
	data := filepath.Join(disk, "data")
	b := newBox(t, envPrefix+"DATA="+data)
	first := b.up()
	b.ok("{\"message\":\"before\"}\n", "send", "app")
	b.ok("", "query", "app")
	b.ok("", "topics", "apply", "pages", "--kind", "document")
	b.ok("", "timers", "groups", "apply", "g")
	w := &observed{box: b, targets: map[string]string{}}
	w.load()
	watch := func() embedded.Addresses {
		addresses, err := embedded.ReadAddresses(data)
		if err != nil {
			t.Fatal(err)
		}
		w.targets["up"] = addresses.HTTP
		return addresses
	}
	watch()
	w.until("DiskFull", false, 0)
	began := time.Now()
	fillDisk(t, disk, 92)
	w.until("DiskFull", true, 0)
	if seen := time.Since(began); os.Getenv(alertsEnv) != "" && seen > alertWithin {
		t.Errorf("DiskFull was true %s after the disk was 92 %% full, more than %s", seen.Round(time.Second), alertWithin)
	}
	first.stop(syscall.SIGINT)
	free := fillDisk(t, disk, 100)
	b.up()
	addresses := watch()
	contains(t, b.ok("", "query", "app"), "before")
	contains(t, b.ok("", "sql", "SELECT 40 + 2"), "42")
	w.until("DiskFull", true, 0)
	b.ok("", "topics", "ls")
	secret, err := keep.ReadLocal(filepath.Join(data, embedded.LocalTokenName))
	if err != nil {
		t.Fatal(err)
	}
	post := func(path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, addresses.HTTP+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	for path, body := range map[string]string{"/v1/topics/app/events": `{"message":"full"}`, "/v1/timers/g": `{}`, "/v1/documents/app": `{}`, "/v1/erasures": `{}`} {
		status, text := post(path, body)
		if status != http.StatusServiceUnavailable && status != http.StatusInsufficientStorage || !strings.Contains(text, "free, less than") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	fillDisk(t, disk, 100) // what up had in reserve, too
	refusesVerbs(t, b, data, addresses)
	free()
	w.until("DiskFull", false, 0)
	embeddedtest.Eventually(t, 2*time.Minute, func() error {
		if status, text := post("/v1/topics/app/events", `{"message":"after"}`); status/100 != 2 {
			return errors.New(text)
		}
		return nil
	})
	b.ok("", "verify", "app")
}
