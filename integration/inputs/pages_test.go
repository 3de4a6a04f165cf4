package inputs

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// TestPagesOfVerb compares the pages of `almanac query` with those over HTTP, byte for
// byte, forwards and backwards, with a filter and with chosen fields.
func TestPagesOfVerb(t *testing.T) {
	n := up(t)
	var lines strings.Builder
	for i := range 130 {
		fmt.Fprintf(&lines, `{"ts":"2026-11-20T10:00:%02d.%03dZ","level":%q,"message":"m %d <b> & \u2028 \\ \"q\" é","user_id":"u-%d","k<":"v>","n":%d}`+"\n", i%60, i, []string{"info", "error"}[i%2], i, i%5, i)
	}
	if status, _, body := get(t, http.MethodPost, n.HTTP+"/v1/topics/app/events?refuse=all", "application/x-ndjson", lines.String()); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	embeddedtest.Eventually(t, maxWait, func() error { // until then positions are not known yet
		_, _, lag := get(t, http.MethodGet, n.HTTP+"/v1/lag?topic=app", "", "")
		if !bytes.Contains(lag, []byte(`"unrouted":0`)) || !bytes.Contains(lag, []byte(`"unstored":0`)) {
			return fmt.Errorf("events are on their way: %s", lag)
		}
		return nil
	})
	const more = "--cursor "
	for name, c := range map[string]struct {
		args  []string
		query string
		total int
	}{
		"oldest first": {[]string{"--order", "asc", "--limit", "40"}, "order=asc&limit=40", 130},
		"newest first": {[]string{"--limit", "50"}, "limit=50", 130},
		"a filter":     {[]string{"--limit", "30", "--where", "level = 'error'"}, "limit=30&where=level+%3D+%27error%27", 65},
		"fields":       {[]string{"--limit", "60", "--fields", "ts,message,attributes.n"}, "limit=60&fields=ts,message,attributes.n", 130},
	} {
		t.Run(name, func(t *testing.T) {
			of, over, total := "", "", 0 // a cursor has the time of its first page, so each way has its own
			for page := 0; ; page++ {
				cmd := n.command(append([]string{"query", "app", "-o", "ndjson", "--page", "--cursor", of}, c.args...)...)
				var notes bytes.Buffer
				cmd.Stderr = &notes
				printed, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %s", err, notes.String())
				}
				status, header, body := get(t, http.MethodGet, n.HTTP+"/v1/topics/app/events?"+c.query+"&cursor="+over, "", "")
				if status != http.StatusOK || !bytes.Equal(body, printed) {
					t.Fatalf("page %d: %d\n%s\nthe verb printed\n%s", page, status, body, printed)
				}
				total += bytes.Count(printed, []byte("\n"))
				of, over = "", header.Get("Almanac-Cursor")
				if m := regexp.MustCompile(more + `(\S+)`).FindStringSubmatch(notes.String()); m != nil {
					of = m[1]
				}
				if (of == "") != (over == "") {
					t.Fatalf("page %d: cursors %q and %q", page, of, over)
				}
				if of == "" {
					break
				}
			}
			if total != c.total {
				t.Errorf("%d events, want %d", total, c.total)
			}
		})
	}
}

// get sends a request that asks for lines.
func get(t *testing.T, method, url, contentType, body string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, answer
}
