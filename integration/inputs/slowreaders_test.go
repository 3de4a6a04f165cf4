package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

const (
	// notRead is how long a slow reader reads nothing: longer than any client may take, and than a connection may idle.
	notRead = 150 * time.Second
	// sqlSlots are the statements that a gateway runs at once.
	sqlSlots = 16
)

// A thousand clients that ask for long answers, by every route that has some, and by every other GET, and read nothing: they are cut, and the
// statements that they had run are given to others. Honest clients read and send beside them: one with the token of the slow ones, which is told
// to come again where they have its share, and one with a token of its own, which is never refused.
func TestSlowReadersOfEveryRoute(t *testing.T) {
	if os.Getenv("ALMANAC_HOSTILE") != "all" {
		t.Skip("it takes minutes: make hostile. internal/gateway has the pace itself")
	}
	count := 1000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(count+500) {
		count = max(int(files.Cur)-500, 50)
		t.Logf("%d files may be open: %d slow clients", files.Cur, count)
	}
	other := writesAndReads("other")
	other.Grants = append(other.Grants, access.Grant{Role: access.RoleSQL})
	file, secrets := secretsOf(t, other)
	t.Setenv("ALMANAC_TOKENS_FILE", file)
	n := up(t)
	secret := n.secret()
	client := &http.Client{Transport: &http.Transport{}, Timeout: maxWait}
	t.Cleanup(client.CloseIdleConnections)
	askAs := func(secret, method, path, kind, body string) (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), method, n.HTTP+path, strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		if kind != "" {
			req.Header.Set("Content-Type", kind)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode, string(text), err
	}
	ask := func(method, path, kind, body string) (int, string, error) {
		return askAs(secret, method, path, kind, body)
	}
	line := `{"message":"` + strings.Repeat("m", 2000) + "\"}\n"
	for range 4 { // 40 MB for those who follow from the beginning, and for pages
		if code, text, err := ask(http.MethodPost, "/v1/topics/app/events?ack=stored", "application/x-ndjson", strings.Repeat(line, 5000)); err != nil || code != http.StatusOK {
			t.Fatalf("%d %.300s %v", code, text, err)
		}
	}

	const long = "SELECT repeat('x', 10000) FROM numbers(100000)"
	since := url.QueryEscape(time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	type asked struct{ base, head, body string }
	all := []asked{
		{n.HTTP, "POST /v1/sql", long}, {n.HTTP, "POST /clickhouse/", long}, {n.HTTP, "GET /v1/topics/app/tail?since=" + since, ""},
		{n.HTTP, "GET /v1/topics/app/events?limit=1000", ""}, {n.HTTP, "GET /loki/api/v1/query_range?limit=5000&query=" + url.QueryEscape(`{topic="app"}`), ""},
	}
	for _, r := range n.everyRoute() {
		if r.method == http.MethodGet {
			all = append(all, asked{r.base, r.method + " " + r.path, ""})
		}
	}
	narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	ctx, cancel := context.WithTimeout(t.Context(), notRead)
	defer cancel()
	var sent, cut sync.WaitGroup
	var came atomic.Int64
	for i := range count {
		one := all[i%len(all)]
		u, err := url.Parse(one.base)
		if err != nil {
			t.Fatal(err)
		}
		sent.Add(1)
		cut.Go(func() {
			c, err := narrow.DialContext(t.Context(), "tcp", u.Host)
			if err == nil {
				defer func() { _ = c.Close() }()
				_, err = fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", one.head, secret, len(one.body), one.body)
			}
			sent.Done()
			if err != nil {
				t.Errorf("%s: %v", one.head, err)
				return
			}
			<-ctx.Done()
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			read, err := io.Copy(io.Discard, c)
			came.Add(read)
			follows := strings.HasSuffix(one.head, "/tail") // from now on: a few events, and it goes on
			if errors.Is(err, os.ErrDeadlineExceeded) && !follows {
				t.Errorf("%s%s: a client that reads nothing is kept; it got %d bytes", one.base, one.head, read)
			}
		})
	}
	sent.Wait()
	honest := []struct{ method, path, kind, body string }{
		{http.MethodGet, "/v1/topics", "", ""}, {http.MethodPost, "/v1/topics/app/events", "application/json", `{"message":"honest"}`}, {http.MethodGet, "/v1/topics/app/count", "", ""}, {http.MethodGet, "/healthz", "", ""},
	}
	others := append(slices.Clone(honest), []struct{ method, path, kind, body string }{
		{http.MethodPost, "/v1/sql", "", "SELECT 1"}, {http.MethodPost, "/clickhouse/", "", "SELECT 1"}, {http.MethodGet, "/v1/topics/app/events?limit=10", "", ""},
		{http.MethodGet, "/loki/api/v1/query_range?limit=10&query=" + url.QueryEscape(`{topic="app"}`), "", ""},
	}...)
	var tookOther []time.Duration
	for i := range 200 {
		h := others[i%len(others)]
		began := time.Now()
		embeddedtest.Eventually(t, maxWait, func() error {
			if code, text, err := askAs(secrets[0], h.method, h.path, h.kind, h.body); err != nil || code != http.StatusOK {
				return fmt.Errorf("%s %s by another token than that of the slow readers: %d %.300s %w", h.method, h.path, code, text, err)
			}
			return nil
		})
		tookOther = append(tookOther, time.Since(began))
	}
	slices.Sort(tookOther)
	t.Logf("%d requests by another token: p50 %s, p99 %s", len(tookOther), tookOther[len(tookOther)/2].Round(time.Millisecond), tookOther[len(tookOther)*99/100].Round(time.Millisecond))
	var took []time.Duration
	for i := range 200 {
		h := honest[i%len(honest)]
		began := time.Now()
		embeddedtest.Eventually(t, maxWait, func() error { // busy is an answer, as long as that ends
			code, text, err := ask(h.method, h.path, h.kind, h.body)
			if err != nil || code != http.StatusOK {
				return fmt.Errorf("%s %s beside slow readers: %d %.300s %w", h.method, h.path, code, text, err)
			}
			return nil
		})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%d honest requests beside %d slow readers of %d routes: p50 %s, p99 %s", len(took), count, len(all), took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond))
	for range sqlSlots { // each slot comes back
		embeddedtest.Eventually(t, maxWait, func() error {
			code, text, err := ask(http.MethodPost, "/v1/sql", "", "SELECT 1")
			if err != nil || code != http.StatusOK {
				return fmt.Errorf("a statement: %d %.300s %w", code, text, err)
			}
			return nil
		})
	}
	<-ctx.Done()
	var held sync.WaitGroup
	for range sqlSlots - 2 { // nothing of theirs is held: as many statements at once as there may be, but for some of others
		held.Go(func() {
			embeddedtest.Eventually(t, maxWait, func() error { // the slots of clients that were cut may take a while to come back
				code, text, err := ask(http.MethodPost, "/v1/sql", "", "SELECT sum(sleepEachRow(0.05)) FROM numbers(20)")
				if err != nil || code != http.StatusOK {
					return fmt.Errorf("many statements at once: %d %.300s %w", code, text, err)
				}
				return nil
			})
		})
	}
	held.Wait()
	cut.Wait()
	t.Logf("%d MiB of their answers were on their way", came.Load()>>20)
}
