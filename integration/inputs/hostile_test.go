package inputs

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// hostile is how much ill will the test has. ALMANAC_HOSTILE=all takes the numbers.
type hostile struct {
	valid, slow, mutated, bombs int
	lasts                       time.Duration
}

func hostility() hostile {
	if os.Getenv("ALMANAC_HOSTILE") == "all" {
		return hostile{valid: 1000, slow: 10_000, mutated: 100_000, bombs: 200, lasts: time.Hour}
	}
	return hostile{valid: 100, slow: 1000, mutated: 800, bombs: 12, lasts: 10 * time.Minute}
}

// TestHostileClients sends good requests among slow connections, bodies that never end, what unpacks to a
// thousand times its size, and changed requests: all good ones are stored once, and memory stays bounded.
func TestHostileClients(t *testing.T) {
	h := hostility()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(h.slow+2000) {
		h.slow = max(int(files.Cur)/2-500, 10)
		t.Logf("%d files may be open: %d slow connections", files.Cur, h.slow)
	}
	n := up(t)
	before := n.resident()
	ctx, cancel := context.WithTimeout(t.Context(), h.lasts)
	defer cancel()

	var ill sync.WaitGroup
	illCtx, heal := context.WithCancel(ctx)
	ill.Go(func() { slowConnections(illCtx, n, h.slow) })
	for range 2 {
		ill.Go(func() { endlessBody(illCtx, n) })
	}
	ill.Go(func() { endlessSyslogLine(illCtx, n) })
	ill.Go(func() { bombs(illCtx, t, n, h.bombs) })
	var mutants sync.WaitGroup
	answered := new(atomic.Int64)
	for worker := range 4 {
		mutants.Go(func() { mutatedRequests(ctx, t, n, uint64(worker), h.mutated/4, answered) })
	}
	mutants.Go(func() { mutatedSyslog(ctx, n, h.mutated/10, answered) })
	mutants.Go(func() { mutatedGRPC(ctx, t, n, h.mutated/10, answered) })
	var good sync.WaitGroup
	for worker := range 4 {
		good.Go(func() {
			for i := worker; i < h.valid; i += 4 {
				if err := n.sendGood(ctx, i); err != nil {
					t.Errorf("good request %d: %v", i, err)
					return
				}
			}
		})
	}
	began := time.Now()
	good.Wait()
	heal()
	ill.Wait()
	t.Logf("%d good requests in %s", h.valid, time.Since(began).Round(time.Second))
	mutants.Wait()
	after := n.resident()
	t.Logf("resident %d MiB before, %d MiB at most; %d changed requests answered", before>>20, after>>20, answered.Load())
	// The engine is a process of its own. The gateway may hold 64 MiB of requests; what decodes them takes more.
	if limit := before + 400<<20; after > limit {
		t.Errorf("%d MiB resident, expected %d at most", after>>20, limit>>20)
	}
	n.storedOnce("app", "attributes['good'] = 'yes'", h.valid)
}

// resident returns the most memory that the process ever had, in bytes.
func (n *node) resident() int64 {
	n.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID))
	if err != nil {
		n.t.Skip("no /proc here")
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		n.t.Fatalf("no VmHWM in %s", text)
	}
	kib, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kib << 10
}

// sendGood sends one event by one of four inputs, until it is taken.
func (n *node) sendGood(ctx context.Context, i int) error {
	at := time.Now().UTC()
	line := fmt.Sprintf(`{"ts":%q,"message":"good","good":"yes","n":"%d"}`, at.Format(time.RFC3339Nano), i)
	url, kind, body := n.HTTP+"/v1/topics/app/events", "application/x-ndjson", line
	switch i % 4 {
	case 1:
		url, kind = n.OTLPHTTP+"/v1/logs", "application/json"
		body = fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"%d","body":{"stringValue":"good"},"attributes":[{"key":"good","value":{"stringValue":"yes"}},{"key":"n","value":{"stringValue":"%d"}}]}]}]}]}`, at.UnixNano(), i)
	case 2:
		url, kind = n.HTTP+"/loki/api/v1/push", "application/json"
		body = fmt.Sprintf(`{"streams":[{"stream":{"good":"yes","n":"%d"},"values":[["%d","good"]]}]}`, i, at.UnixNano())
	case 3:
		url, kind = n.Elastic+"/app/_bulk", "application/x-ndjson"
		body = `{"create":{}}` + "\n" + strings.Replace(line, `"ts"`, `"@timestamp"`, 1) + "\n"
	}
	client := http.Client{Timeout: maxWait}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", kind)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		busy := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable || bytes.Contains(answer, []byte(`"status":429`))
		switch {
		case err != nil:
			return err
		case busy && bytes.Contains(answer, []byte("outcome")):
			return fmt.Errorf("%s: %s: an unknown outcome may double it", url, answer)
		case busy:
			continue // nothing was taken; the answer held it back
		case resp.StatusCode/100 != 2 || bytes.Contains(answer, []byte(`"errors":true`)) || bytes.Contains(answer, []byte(`"accepted":0`)):
			return fmt.Errorf("%s: %s %s", url, resp.Status, answer)
		}
		return nil
	}
}

// storedOnce waits until a filter has count events, and each value of n among them once.
func (n *node) storedOnce(topic, where string, count int) {
	n.t.Helper()
	var different, rows int
	embeddedtest.Eventually(n.t, maxWait, func() error { // a page of query has 1,000 events at most
		out, err := n.command("sql", "SELECT uniqExact(attributes['n']), count() FROM "+topic+" WHERE "+where, "--format", "TSV").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if _, err := fmt.Sscan(string(out), &different, &rows); err != nil || different < count {
			return fmt.Errorf("%d of %d events (%w)", different, count, err)
		}
		return nil
	})
	if different != count || rows != count {
		n.t.Errorf("%d different events in %d rows, want %d", different, rows, count)
	}
}

// slowConnections opens many at once: half stop within the head, half after one byte of a body of 16 MiB.
func slowConnections(ctx context.Context, n *node, count int) {
	var all sync.WaitGroup
	addresses := []string{n.HTTP, n.OTLPHTTP, n.Elastic, "//" + n.OTLPGRPC}
	for i := range count {
		base := addresses[i%len(addresses)]
		all.Go(func() {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", base[strings.Index(base, "//")+2:])
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			head := "POST /v1/topics/app/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
			if i/len(addresses)%2 == 1 {
				head += "Content-Type: application/x-ndjson\r\nContent-Length: 16000000\r\n\r\n{"
			}
			_, _ = io.WriteString(c, head)
			go func() { // the server ends it, or the test does
				<-ctx.Done()
				_ = c.Close()
			}()
			_, _ = io.Copy(io.Discard, c)
		})
	}
	all.Wait()
}

// endlessBody sends chunks for as long as they are read.
func endlessBody(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		line := []byte(`{"message":"` + strings.Repeat("x", 4000) + "\"}\n")
		body := readerFunc(func(p []byte) (int, error) { return copy(p, line), ctx.Err() })
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.HTTP+"/v1/topics/app/events", body)
		if err != nil {
			return
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// endlessSyslogLine sends a line without an end, 64 MiB of it.
func endlessSyslogLine(ctx context.Context, n *node) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.SyslogTCP)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "<34>1 2026-11-20T10:00:00Z host app - - - ")
	part := bytes.Repeat([]byte("y"), 64<<10)
	for range 1024 {
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second)) // held back is right too
		if _, err := c.Write(part); err != nil {
			return
		}
	}
}

// bombs sends bodies that unpack to far more than they are; each must be refused as too large.
func bombs(ctx context.Context, t *testing.T, n *node, count int) {
	zeros := make([]byte, 1<<20)
	var packed, zpacked bytes.Buffer
	z := gzip.NewWriter(&packed)
	zz, err := zstd.NewWriter(&zpacked)
	if err != nil {
		t.Error(err)
		return
	}
	for range 200 {
		_, _ = z.Write(zeros)
		_, _ = zz.Write(zeros)
	}
	_, _ = z.Close(), zz.Close()
	for i := range count {
		url, encoding, body := n.HTTP+"/v1/topics/app/events", "gzip", packed.Bytes()
		if i%2 == 1 {
			encoding, body = "zstd", zpacked.Bytes()
		}
		if i%4 > 1 {
			url = n.OTLPHTTP + "/v1/logs"
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Content-Encoding", encoding)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // cut off, or the test has ended
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusInternalServerError {
			t.Errorf("a body of 200 MiB in %d bytes of %s: %s %.200s", len(body), encoding, resp.Status, answer)
		}
	}
}

// mutatedRequests changes good requests at random. Each is answered, and none by a fault of the gateway.
func mutatedRequests(ctx context.Context, t *testing.T, n *node, seed uint64, count int, answered *atomic.Int64) {
	random := rand.New(rand.NewPCG(seed, 14))
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	whole := []struct{ url, kind, body string }{
		{n.HTTP + "/v1/topics/app/events", "application/x-ndjson", `{"ts":"2026-11-20T10:00:00Z","message":"m","a":{"b":[1,2,{"c":null}]},"d":1e300}`},
		{n.HTTP + "/v1/topics/app/events?format=csv", "text/csv", "ts,message,level\n2026-11-20T10:00:00Z,\"x\"\"y\",info\n"},
		{n.HTTP + "/v1/topics/app/events?format=logfmt", "text/plain", `ts=2026-11-20T10:00:00Z msg="a b" level=info k=v`},
		{n.OTLPHTTP + "/v1/logs", "application/json", `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},"scopeLogs":[{"logRecords":[{"timeUnixNano":"` + now + `","severityNumber":9,"body":{"kvlistValue":{"values":[{"key":"k","value":{"arrayValue":{"values":[{"intValue":"5"}]}}}]}}}]}]}]}`},
		{n.OTLPHTTP + "/v1/logs", "application/x-protobuf", "\x0a\x16\x12\x14\x12\x12\x09\x00\x00\x00\x00\x00\x00\x00\x18\x2a\x07\x0a\x05hello"},
		{n.HTTP + "/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"app":"a","l":"{x=\"y\"}"},"values":[["` + now + `","line",{"m":"v"}]]}]}`},
		{n.HTTP + "/loki/api/v1/push", "application/x-protobuf", "\x1c\x6c\x0a\x1a\x0a\x07{a=\"b\"}\x12\x0f\x0a\x06\x08\x80\x92\xb8\xc3\x06\x12\x05hello"},
		{n.HTTP + "/t/cpu/api/v1/write", "application/x-protobuf", "\x28\x9c\x0a\x26\x0a\x12\x0a\x08__name__\x12\x06metric\x12\x10\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x80\xe0\xa1\xc0\x9a\x32"},
		{n.Elastic + "/_bulk", "application/x-ndjson", `{"index":{"_index":"app","_id":"1"}}` + "\n" + `{"@timestamp":"2026-11-20T10:00:00Z","message":"m"}` + "\n"},
	}
	for i := range count {
		one := whole[i%len(whole)]
		body := mutate(random, []byte(one.body))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, one.url, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Content-Type", one.kind)
		if strings.HasSuffix(one.url, "/api/v1/write") {
			req.Header.Set("Content-Encoding", "snappy")
		}
		if random.IntN(20) == 0 {
			req.Header.Set("Content-Encoding", []string{"gzip", "zstd", "br", "snappy"}[random.IntN(4)])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s with %q: no answer: %v", one.url, body, err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		answered.Add(1)
		if resp.StatusCode == http.StatusInternalServerError {
			t.Errorf("%s with %q (worker %d, request %d): %s", one.url, body, seed, i, resp.Status)
		}
	}
}

// mutate flips, cuts, doubles and inserts.
func mutate(random *rand.Rand, b []byte) []byte {
	for range 1 + random.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := random.IntN(len(b))
		switch random.IntN(5) {
		case 0:
			b[at] ^= byte(1 << random.IntN(8))
		case 1:
			b = b[:at]
		case 2:
			b = append(b[:at:at], b[random.IntN(at+1):]...)
		case 3:
			b = append(b[:at:at], append([]byte{byte(random.IntN(256))}, b[at:]...)...)
		case 4:
			b = append(b[:at:at], append(bytes.Repeat([]byte(`[{"`), random.IntN(3000)), b[at:]...)...)
		}
	}
	return b
}
