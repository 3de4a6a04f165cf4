package inputs

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
)

// wrongTokens is how many requests with a wrong secret are sent, and how many of them are under way. With ALMANAC_HOSTILE=all more
// wait than the gateway lets wait at once (keep).
func wrongTokens() (count, atOnce int) {
	if os.Getenv("ALMANAC_HOSTILE") == "all" {
		return 10_000, 400
	}
	return 400, 100
}

// secretsOf writes a file of tokens and returns it, with the secret of each.
func secretsOf(t *testing.T, all ...access.Token) (file string, secrets []string) {
	t.Helper()
	for i := range all {
		secret, id := access.NewSecret()
		all[i].ID, all[i].Digest = id, access.DigestOf(secret)
		secrets = append(secrets, secret)
	}
	file = filepath.Join(t.TempDir(), "tokens.yaml")
	if err := keep.WriteFile(file, all); err != nil {
		t.Fatal(err)
	}
	return file, secrets
}

// writesAndReads is a token for the topic app.
func writesAndReads(name string) access.Token {
	return access.Token{Name: name, Grants: []access.Grant{{Role: access.RoleWrite, Topics: []string{"app"}}, {Role: access.RoleRead, Topics: []string{"app"}}}}
}

// givenAs are the ways to give a secret in a request.
var givenAs = []func(r *http.Request, secret string){
	func(r *http.Request, secret string) { r.Header.Set("Authorization", "Bearer "+secret) },
	func(r *http.Request, secret string) { r.Header.Set("Authorization", "Token "+secret) },
	func(r *http.Request, secret string) { r.SetBasicAuth("someone", secret) },
	func(r *http.Request, secret string) { r.SetBasicAuth(secret, "") },
	func(r *http.Request, secret string) { r.Header.Set("Authorization", "ApiKey "+secret) },
	func(r *http.Request, secret string) {
		r.Header.Set("Authorization", "ApiKey "+base64.StdEncoding.EncodeToString([]byte("id:"+secret)))
	},
	func(r *http.Request, secret string) {
		r.Header.Set("X-ClickHouse-User", "default")
		r.Header.Set("X-ClickHouse-Key", secret)
	},
}

// inAddress gives a secret where none is taken from, even a right one: addresses are logged.
func inAddress(r *http.Request, secret string) {
	r.URL.RawQuery = "password=" + secret + "&access_token=" + secret + "&token=" + secret
}

// refusals counts answers by what they are.
type refusals struct {
	mu sync.Mutex
	by map[string]int
}

func (r *refusals) add(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[what]++
}

// tries sends wrong secrets from one client: each is refused, or its connection is ended.
func (n *node) tries(ctx context.Context, client *http.Client, secret string, give func(*http.Request, string), method, at, body string, got *refusals) error {
	req, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	give(req, secret)
	resp, err := client.Do(req)
	if err != nil {
		got.add("cut")
		return nil //nolint:nilerr // that is as good as an answer
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	got.add(strconv.Itoa(resp.StatusCode))
	unknown := resp.StatusCode == http.StatusBadRequest && strings.Contains(string(text), "unknown parameter") // what routes take is told to all
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusTooManyRequests && !unknown {
		return fmt.Errorf("%s %s with a wrong secret: %s %.300s", method, at, resp.Status, text)
	}
	if secret != "" && strings.Contains(string(text), secret) {
		return fmt.Errorf("%s %s tells the secret: %s", method, at, text)
	}
	return nil
}

// Many clients send secrets that are not valid, in every way, over every listener: each is refused, and counted. An honest client with a
// token sends and reads beside them, and is never refused.
func TestWrongTokens(t *testing.T) {
	count, atOnce := wrongTokens()
	ended, elsewhere := writesAndReads("ended"), writesAndReads("elsewhere")
	ended.Expires = time.Now().Add(-time.Hour)
	elsewhere.From = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	file, secrets := secretsOf(t, writesAndReads("honest"), ended, elsewhere)
	t.Setenv("ALMANAC_TOKENS_FILE", file)
	t.Setenv("ALMANAC_LOOPBACK_TOKENS", "true")
	n := up(t)
	secret := secrets[0]
	wrong := func(i int) string {
		unknown, _ := access.NewSecret()
		id := strings.LastIndex(secret, "_") + 1
		return []string{unknown, secret[:id] + unknown[id:], secrets[1], secrets[2], secret[:len(secret)-1], secret + "A", "hunter2", ""}[i%8]
	}

	honest := &http.Client{Transport: &http.Transport{}, Timeout: maxWait}
	t.Cleanup(honest.CloseIdleConnections)
	sent := 0
	turn := func(i int) time.Duration {
		method, at, body := http.MethodGet, n.HTTP+"/v1/topics/app/count", ""
		if i%2 == 0 {
			method, at, body = http.MethodPost, n.HTTP+"/v1/topics/app/events", fmt.Sprintf(`{"message":"honest","honest":"yes","n":"%d"}`, sent)
			sent++
		}
		req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		givenAs[i/2%len(givenAs)](req, secret)
		if i/2%len(givenAs) == 3 { // which has the secret as the user, and is for those that are wrong
			req.SetBasicAuth("someone", secret)
		}
		began := time.Now()
		resp, err := honest.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, at, err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("the honest client, %s %s: %s %.300s %v", method, at, resp.Status, text, err)
		}
		return time.Since(began)
	}
	var alone []time.Duration
	for i := range 40 {
		alone = append(alone, turn(i))
	}

	before := n.authFailures()
	got := &refusals{by: map[string]int{}}
	var next atomic.Int64
	var trying sync.WaitGroup
	t.Cleanup(trying.Wait)
	routes := []struct{ method, at, body string }{
		{http.MethodPost, n.HTTP + "/v1/topics/app/events", `{"message":"wrong"}`},
		{http.MethodGet, n.HTTP + "/v1/topics/app/events", ""},
		{http.MethodPost, n.HTTP + "/v1/sql", "SELECT 1"},
		{http.MethodPost, n.HTTP + "/clickhouse/", "SELECT 1"},
		{http.MethodPost, n.HTTP + "/loki/api/v1/push", `{"streams":[{"stream":{"app":"wrong"},"values":[["1764000000000000000","wrong"]]}]}`},
		{http.MethodGet, n.HTTP + "/loki/api/v1/query_range?query=%7Btopic%3D%22app%22%7D", ""},
		{http.MethodPost, n.HTTP + "/elastic/app/_bulk", "{\"create\":{}}\n{\"message\":\"wrong\"}\n"},
		{http.MethodPost, n.Elastic + "/app/_bulk", "{\"create\":{}}\n{\"message\":\"wrong\"}\n"},
		{http.MethodPost, n.OTLPHTTP + "/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"wrong"}}]}]}]}`},
		{http.MethodPost, n.HTTP + "/v1/erasures", `{"topic":"app","user":"u"}`},
		{http.MethodGet, n.HTTP + "/metrics", ""},
	}
	for worker := range atOnce {
		client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: peerAddress(worker)}).DialContext}, Timeout: maxWait}
		trying.Go(func() {
			defer client.CloseIdleConnections()
			for {
				i := int(next.Add(1) - 1)
				if i >= count {
					return
				}
				r := routes[i%len(routes)]
				var err error
				switch way := i / len(routes) % (len(givenAs) + 2); {
				case way < len(givenAs):
					err = n.tries(t.Context(), client, wrong(i), givenAs[way], r.method, r.at, r.body, got)
				case way == len(givenAs):
					err = n.tries(t.Context(), client, secret, inAddress, r.method, strings.SplitN(r.at, "?", 2)[0], r.body, got)
				default:
					err = n.triesGRPC(t.Context(), wrong(i), got)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { trying.Wait(); close(done) }()
	var took []time.Duration
	for i, over := 0, false; !over || i < 60; i++ {
		took = append(took, turn(i))
		select {
		case <-done:
			over = true
		default:
		}
	}
	<-done
	refused := got.by["401"] + got.by["429"] + got.by["gRPC Unauthenticated"] + got.by["gRPC ResourceExhausted"]
	for _, what := range slices.Sorted(maps.Keys(got.by)) {
		t.Logf("%6d × %s", got.by[what], what)
	}
	if counted, unknown := n.authFailures()-before, got.by["401"]+got.by["gRPC Unauthenticated"]; counted < unknown {
		t.Errorf("%d were refused for who sent them, and %d are counted", unknown, counted)
	}
	if refused < count/2 {
		t.Errorf("only %d of %d were answered", refused, count)
	}
	slices.Sort(alone)
	slices.Sort(took)
	t.Logf("%d honest requests alone: p50 %s, p99 %s", len(alone), alone[len(alone)/2].Round(time.Millisecond), alone[len(alone)*99/100].Round(time.Millisecond))
	t.Logf("%d honest requests beside %d wrong tokens: p50 %s, p99 %s", len(took), count, took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond))
	n.storedOnce("app", "attributes['honest'] = 'yes'", sent)
	n.found("app", "message = 'wrong'", 0)
}

// peerAddress is where a client connects from: several addresses of this machine, where it has them.
func peerAddress(worker int) net.Addr {
	if runtime.GOOS != "linux" {
		return nil
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+worker%8))}
}

// triesGRPC sends a call of OTLP with a wrong secret.
func (n *node) triesGRPC(ctx context.Context, secret string, got *refusals) error {
	client, err := grpc.NewClient(n.OTLPGRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	var body, answer []byte
	err = client.Invoke(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret), "/opentelemetry.proto.collector.logs.v1.LogsService/Export", &body, &answer, grpc.ForceCodecV2(rawCodec{}))
	code := status.Code(err)
	got.add("gRPC " + code.String())
	switch code {
	case codes.Unauthenticated, codes.ResourceExhausted, codes.Unavailable:
		return nil
	}
	return fmt.Errorf("gRPC with a wrong secret: %w", err)
}

// authFailures is how many requests were refused for who sent them.
func (n *node) authFailures() (sum int) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, n.HTTP+"/metrics", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := n.authorized(http.DefaultTransport).RoundTrip(req)
	if err != nil {
		n.t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		n.t.Fatalf("%s %.300s %v", resp.Status, text, err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "almanac_auth_failures_total{") {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			if err != nil {
				n.t.Fatal(err)
			}
			sum += int(v)
		}
	}
	return sum
}
