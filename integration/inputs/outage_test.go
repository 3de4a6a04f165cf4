package inputs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// withoutNATS is how long NATS is away while the helper sends.
const withoutNATS = 10 * time.Second

// TestElasticHelperWithoutNATS stops NATS for ten seconds while the helper of
// @elastic/elasticsearch gives documents to a gateway of its own process: the helper
// drops none, and each is stored.
func TestElasticHelperWithoutNATS(t *testing.T) {
	dir := installed(t)
	n := up(t)
	var created, refused atomic.Int64 // items, as the helper is told
	watched := watchItems(t, n.gateway(), &created, &refused)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "elasticsearch-outage.mjs")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ELASTIC="+watched)
	var said, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &failed
	goOn, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	more := func(what string, count *atomic.Int64, than int64) {
		embeddedtest.Eventually(t, maxWait, func() error {
			if count.Load() <= than {
				return errors.New("no document is " + what)
			}
			return nil
		})
	}
	more("taken", &created, 0)
	stop := time.Now()
	if err := n.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goes := func() { _ = n.process.Signal(syscall.SIGCONT) }
	t.Cleanup(goes) // before the end of up, whatever happens
	more("refused", &refused, 0)
	<-time.After(time.Until(stop.Add(withoutNATS)))
	goes()
	more("taken after NATS was away", &created, created.Load())
	_ = goOn.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the helper: %v: %s", err, failed.String())
	}
	var told struct{ Sent, Retried int }
	if err := json.Unmarshal(said.Bytes(), &told); err != nil || told.Retried == 0 {
		t.Fatalf("the helper said %q (%v)", said.String(), err)
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		out, err := n.command("sql", "SELECT uniqExact(attributes['n']), count() FROM probe WHERE message = 'through an outage'", "--format", "TSV").Output()
		if err != nil {
			return err
		}
		var stored, rows int
		if _, err := fmt.Sscan(string(out), &stored, &rows); err != nil {
			return err
		}
		if stored != told.Sent {
			return fmt.Errorf("%d of %d documents are stored", stored, told.Sent)
		}
		t.Logf("%d documents, %d of them sent again by the helper, %d items refused, %d rows", told.Sent, told.Retried, refused.Load(), rows)
		return nil
	})
}

// gateway runs a gateway in a process of its own, and returns its URL for clients of
// Elasticsearch.
func (n *node) gateway() (elastic string) {
	n.t.Helper()
	address := embeddedtest.FreeAddress(n.t)
	cmd := n.command("gateway", "--http", "off", "--otlp-http", "off", "--otlp-grpc", "off", "--elastic", address, "--log-format", "json")
	out, err := cmd.StderrPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	var said bytes.Buffer // not read before ended
	go func() {
		defer close(ended)
		seen := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said.Write(append(lines.Bytes(), '\n'))
			if !seen && strings.Contains(lines.Text(), `"message":"ready"`) {
				seen = true
				close(ready)
			}
		}
		_ = cmd.Wait()
	}()
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if <-ended; n.t.Failed() {
			n.t.Logf("the gateway said: %s", said.String())
		}
	})
	select {
	case <-ready:
	case <-ended:
		n.t.Fatal("the gateway ended")
	case <-time.After(maxWait):
		n.t.Fatal("the gateway is not ready")
	}
	return "http://" + address
}

// watchItems listens before a bulk API and counts the items that it answers with 201 and
// 429. It returns the URL to send to.
func watchItems(t *testing.T, target string, created, refused *atomic.Int64) string {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(resp *http.Response) error {
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		created.Add(int64(bytes.Count(body, []byte(`"status":201`))))
		refused.Add(int64(bytes.Count(body, []byte(`"status":429`))))
		return err
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL
}
