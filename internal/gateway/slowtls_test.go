package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
)

// A thousand clients that begin a handshake of TLS and say no more hold no honest one up, and are cut after some seconds: some have said
// nothing at all, some the first bytes of a hello.
func TestSlowHandshakes(t *testing.T) {
	t.Parallel()
	const slow, honest = 1000, 50
	ca := certstest.New(t, "ca")
	cert, key := ca.Files(t, t.TempDir(), "gateway")
	files, err := certs.Open(certs.Config{Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(files.Close)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := New(Config{HTTP: l, TLS: files.TLS(), Hold: time.Millisecond, Health: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var cut sync.WaitGroup
	kept := make(chan error, slow)
	for i := range slow {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if i%2 == 0 {
			if _, err := c.Write([]byte{22, 3, 1, 2}); err != nil { // of a record that goes on
				t.Fatal(err)
			}
		}
		cut.Go(func() {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, c); err != nil && isTimeout(err) {
				kept <- err
			}
		})
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}}}
	var took []time.Duration
	for range honest {
		began := time.Now()
		resp, err := client.Get("https://" + l.Addr().String() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("an honest client gets %s", resp.Status)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%d honest clients beside %d slow ones: p99 %s", honest, slow, took[honest*99/100])
	cut.Wait()
	if len(kept) > 0 {
		t.Errorf("%d slow clients were kept for a minute", len(kept))
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
