package browser

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Host is the name of the site.
const Host = "evil.example"

// maxWait is how long a visit may take on a machine that is busy.
const maxWait = 10 * time.Minute

// maxReport is what of a report is kept.
const maxReport = 1 << 20

// Site serves the pages of a test.
type Site struct {
	// Public says whether chromium counts the site's address as one of the internet.
	Public bool

	t       testing.TB
	address string
	binary  string

	mu      sync.Mutex
	page    string
	reports []string
	done    chan struct{}
}

// NewSite serves a site until the test ends. Without a chromium it skips the test.
func NewSite(t testing.TB) *Site {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here: apt-get install chromium")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{t: t, binary: binary, address: l.Addr().String()}
	srv := &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: maxWait}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return s
}

// Origin returns the site's.
func (s *Site) Origin() string {
	_, port, _ := net.SplitHostPort(s.address)
	return "http://" + Host + ":" + port
}

// helpers are what a page calls. Reports leave also from a page of another origin that took the script along.
const helpers = `<!DOCTYPE html><meta charset="utf-8"><title>page</title><script>
const origin = %q
function report(text) { return fetch(origin + '/report', {method: 'POST', mode: 'no-cors', body: String(text)}) }
function done() { return fetch(origin + '/done', {method: 'POST', mode: 'no-cors'}) }
const wait = ms => new Promise(f => setTimeout(f, ms))
</script>
`

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/report":
		text, _ := io.ReadAll(io.LimitReader(r.Body, maxReport))
		s.reports = append(s.reports, r.URL.Query().Get("text")+string(text))
	case "/done":
		select {
		case <-s.done:
		default:
			close(s.done)
		}
	case "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, helpers+"%s", s.Origin(), s.page)
	default:
		http.NotFound(w, r)
	}
}

// Visit shows a page and returns what it reported until it was done.
func (s *Site) Visit(page string) []string {
	s.t.Helper()
	done := make(chan struct{})
	s.mu.Lock()
	s.page, s.reports, s.done = page, nil, done
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.t.Context(), maxWait)
	defer cancel()
	dir, err := os.MkdirTemp("", "almanac-browser-")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-popup-blocking", "--remote-debugging-port=0", "--user-data-dir=" + dir, "--host-resolver-rules=MAP " + Host + " 127.0.0.1",
	}
	if s.Public {
		args = append(args, "--ip-address-space-overrides="+s.address+"=public")
	}
	var said strings.Builder
	cmd := exec.Command(s.binary, append(args, s.Origin()+"/")...)
	cmd.Stderr, cmd.SysProcAttr = &said, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	why := ""
	select {
	case <-done:
	case <-ended:
		why = "chromium ended"
	case <-ctx.Done():
		why = "the page was not done in time"
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and the processes that it began
	<-ended
	if why != "" {
		s.t.Fatalf("%s:\n%s", why, said.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.reports...)
}
