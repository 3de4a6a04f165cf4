package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/operations"
)

// marked are settings with a secret each, which has the mark in it.
func marked(mark string) map[string]string {
	return map[string]string{
		"pii_key":        mark + "0123456789abcdef",
		"timers_secrets": "a@*=whsec_" + mark + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0",
		"token":          "alm_aaaaaa_" + mark + strings.Repeat("A", 26-len(mark)),
		"nats":           "nats://u:" + mark + "@127.0.0.1:1",
		"clickhouse":     "http://u:" + mark + "@127.0.0.1:1/almanac",

		"clickhouse_reader": "reader:" + mark,
		"clickhouse_reads":  "gateway:" + mark,
		"tokens":            "tokens: [] # " + mark,

		"otlp_export_headers": "authorization=Bearer%20" + mark,
	}
}

// Each setting that is a secret is among those that are searched for.
func TestSecretsAreMarked(t *testing.T) {
	t.Parallel()
	all := marked("MARKhush")
	for i := range keys {
		if text := all[keys[i].name]; keys[i].secret != strings.Contains(text, "MARKhush") {
			t.Errorf("%s is a secret: %t, and is marked: %q", keys[i].name, keys[i].secret, text)
		}
	}
}

// bucketSecrets are the credentials of an object store, in the environment, where its clients have them.
func bucketSecrets(mark string) []string {
	return []string{"AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=" + mark + "key", "AWS_SESSION_TOKEN=" + mark + "session"}
}

// Secrets that are given in every way, to servers that do not answer and to those that refuse, are in nothing that is printed.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const mark = "MARKhush"
	all := marked(mark)
	boxes := map[string]func(b *box) []string{
		"environment": func(b *box) []string {
			for name, text := range all {
				b.env = append(b.env, findKey(name).env()+"="+text)
			}
			return nil
		},
		"files": func(b *box) []string {
			for name, text := range all {
				b.env = append(b.env, findKey(name).env()+"_FILE="+b.write(name, text+"\n"))
			}
			return nil
		},
		"settings file": func(b *box) []string {
			var text strings.Builder
			for name, value := range all {
				fmt.Fprintf(&text, "%s: %q\n", name, value)
			}
			b.write("almanac.yaml", text.String())
			return nil
		},
		"flags": func(*box) []string { return []string{"--nats", all["nats"], "--clickhouse", all["clickhouse"]} },
	}
	for name, give := range boxes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			flags := give(b)
			b.env = append(b.env, bucketSecrets(mark)...)
			for _, verb := range []string{"config show", "config check", "topics ls", "query app", "sql SELECT(1)", "send app", "verify", "docs ls app", "tail app", "doctor", "alerts ls app", "mcp", "backup s3://a-bucket/x", "restore s3://a-bucket/x --s3-endpoint http://127.0.0.1:1/"} {
				r := b.run("x\n", append(strings.Fields(verb), flags...)...)
				if strings.Contains(r.out+r.err, mark) {
					t.Errorf("%s:\n%s%s", verb, r.out, r.err)
				}
			}
		})
	}
	broken := map[string]string{"clickhouse_reader": mark, "pii_key": mark, "timers_secrets": mark, "tokens": mark + ": [", "otlp_export_headers": mark, "nats": "nats://u:" + mark + "@\x7f", "clickhouse": "clickhouse://u:" + mark + "@x:y:z/\x7f"}
	for i := range keys { // whatever is given as an address may have a password, rightly or not
		if !keys[i].secret && strings.Contains(keys[i].usage, "`URL`") {
			broken[keys[i].name] = "https://u:" + mark + "@127.0.0.1:1"
		}
	}
	for name, text := range broken {
		b := newBox(t)
		if findKey(name).secret {
			b.env = append(b.env, findKey(name).env()+"_FILE="+b.write(name, text))
		} else {
			b.env = append(b.env, findKey(name).env()+"="+text)
		}
		b.env = append(b.env, bucketSecrets(mark)...)
		for _, verb := range []string{"config show", "config check", "topics ls", "query app", "backup s3://a-bucket/x"} {
			if r := b.run("", strings.Fields(verb)...); strings.Contains(r.out+r.err, mark) {
				t.Errorf("a broken %s, %s:\n%s%s", name, verb, r.out, r.err)
			}
		}
	}
}

// The secrets of an up that runs, and those that it makes, are in its log, its answers, its children's arguments and environment not at all, and on disk only in
// files of mode 0600.
func TestSecretsOfAnUp(t *testing.T) {
	t.Parallel()
	const mark = "MARKhush"
	b := newBox(t)
	for name, text := range marked(mark) {
		if name != "nats" && name != "clickhouse" {
			b.env = append(b.env, findKey(name).env()+"="+text)
		}
	}
	s := b.up()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	local, err := os.ReadFile(filepath.Join(b.data(), embedded.LocalTokenName))
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{mark, strings.TrimSpace(string(local)), a.Password, a.ReaderPassword}
	finds := func(where string, text []byte) {
		t.Helper()
		for i, secret := range secrets {
			if secret == "" {
				t.Fatalf("secret %d is empty", i)
			}
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("secret %d is in %s", i, where)
			}
		}
	}
	wrong, _ := access.NewSecret()
	secrets = append(secrets, wrong)
	var asking errgroup.Group
	asking.SetLimit(32) // who tries many wrong tokens waits for each
	var asked atomic.Int64
	for _, secret := range []string{wrong, secrets[1], marked(mark)["token"]} {
		for _, route := range secretRoutes() {
			asking.Go(func() error {
				method, path, _ := strings.Cut(route, " ")
				ctx, cancel := context.WithTimeout(t.Context(), answerWithin(path))
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, method, a.HTTP+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
				if err != nil {
					return err
				}
				for name, value := range map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
					req.Header.Set(name, value)
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil && strings.Contains(path, "tail") {
					return nil //nolint:nilerr // it may have nothing to say
				}
				if err != nil {
					return fmt.Errorf("%s: %w", route, err)
				}
				var text bytes.Buffer
				_, _ = text.ReadFrom(resp.Body) // a tail ends with ctx
				_ = resp.Body.Close()
				finds("the answer of "+route, text.Bytes())
				finds("the headers of "+route, []byte(fmt.Sprint(resp.Header)))
				asked.Add(1)
				return nil
			})
		}
	}
	if err := asking.Wait(); err != nil || asked.Load() < int64(3*len(operations.All)) {
		t.Errorf("%d routes were asked: %v", asked.Load(), err)
	}
	secrets = append(secrets, receiversAreHidden(t, a.HTTP, secrets[1]))
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // which says what it heard, as some do
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message><Resource>%s</Resource></Error>", r.URL.Path)
	}))
	defer bucket.Close()
	backups := *b
	backups.env = append(slices.Clone(b.env), append(bucketSecrets(mark), envPrefix+"S3_ENDPOINT="+bucket.URL)...)
	for _, verb := range []string{"backup s3://a-bucket/x", "restore s3://a-bucket/x --data elsewhere", "backup s3://a-bucket/x -o json"} {
		r := backups.run("", strings.Fields(verb)...)
		if r.code == exitOK {
			t.Errorf("%s: %s", verb, r.out)
		}
		finds(verb, []byte(r.out+r.err))
	}
	finds("config show", []byte(b.ok("", "config", "show", "-o", "json")))
	finds("the log", []byte(s.stderr()))
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// It has what it was given there, which the operator chose, and nothing of what it made.
	finds("its environment", bytes.ReplaceAll(bytes.ReplaceAll(own, []byte(marked(mark)["token"]), nil), []byte(mark), nil))
	children, engines := 0, 0
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[string]bool{fmt.Sprint(s.cmd.Process.Pid): true}
	for range 3 { // children, theirs, and theirs
		for _, stat := range processes {
			text, err := os.ReadFile(stat)
			if err != nil {
				continue
			}
			_, rest, _ := strings.Cut(string(text), ") ")
			if f := strings.Fields(rest); len(f) < 2 || !parents[f[1]] {
				continue
			}
			dir := filepath.Dir(stat)
			parents[filepath.Base(dir)] = true
			children++
			for _, name := range []string{"cmdline", "environ"} {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err == nil {
					finds(dir+"/"+name, text)
				}
				if name == "cmdline" && bytes.Contains(text, []byte(embedded.EngineCommand)) {
					engines++
				}
			}
		}
	}
	if children == 0 || engines == 0 {
		t.Errorf("%d children were found, %d of them an engine", children, engines)
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	finds("its arguments", cmdline)
	checkSecretFiles(t, b.data(), finds)
}

// receiversAreHidden declares receivers of alerts by a token that operates, and finds that a client which only reads is not told what they are called
// with. It returns what is hidden.
func receiversAreHidden(t *testing.T, base, token string) string {
	t.Helper()
	const mark = "RECEIVERhush"
	ask := func(method, path, token, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, text, err)
		}
		return string(text)
	}
	ask(http.MethodPut, "/v1/alerts/rules/ops", token, `{"name":"ops","rules":[],"receivers":[{"name":"chat","form":"slack","url":"https://hooks.example.com/services/`+mark+`"},
		{"name":"pager","form":"pagerduty","routing_key":"`+mark+`0123456789"}]}`)
	const shown = `"url":"https://hooks.example.com/`
	if text := ask(http.MethodGet, "/v1/alerts/rules", "", ""); strings.Contains(text, mark) || !strings.Contains(text, shown) || !strings.Contains(text, `"routing_key":"`) {
		t.Errorf("a client without a token reads the receivers of alerts: %s", text)
	}
	if text := ask(http.MethodGet, "/v1/alerts/rules", token, ""); strings.Count(text, mark) != 2 {
		t.Errorf("who may change the receivers of alerts reads %s", text)
	}
	return mark
}

// secretRoutes are all that an up answers: what is declared, and what clients of other programs ask.
func secretRoutes() []string {
	all := []string{"GET /metrics", "GET /version", "GET /readyz", "GET /v1/nothing", "POST /elastic/_bulk", "POST /clickhouse"}
	for _, pattern := range gateway.Foreign() {
		all = append(all, inPath.ReplaceAllString(pattern, "app"))
	}
	for _, o := range operations.All {
		all = append(all, o.Method+" "+inPath.ReplaceAllString(o.Path, "app"))
	}
	return all
}

var inPath = regexp.MustCompile(`\{\w+\}`)

// answerWithin is how long an answer is read: a tail has no end.
func answerWithin(path string) time.Duration {
	if strings.Contains(path, "tail") {
		return time.Second
	}
	return maxWait
}

// checkSecretFiles looks for secrets in the files of a directory that others than their owner may read.
func checkSecretFiles(t *testing.T, dir string, finds func(where string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // files come and go
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			return nil //nolint:nilerr // it is gone, or its owner's alone
		}
		return inPieces(path, func(text []byte) {
			finds(fmt.Sprintf("%s (mode %04o)", path, info.Mode().Perm()), text)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	// secretPiece is how much of a file is looked at at once.
	secretPiece = 1 << 20
	// secretOverlap is how much of a piece the next one has too: more than a secret has.
	secretOverlap = 4 << 10
)

// inPieces reads a file of any size. What is shorter than secretOverlap is in one of the pieces as a whole.
func inPieces(path string, looks func(text []byte)) error {
	f, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // files come and go
	}
	defer func() { _ = f.Close() }()
	buf, kept := make([]byte, secretPiece+secretOverlap), 0
	for {
		n, err := io.ReadFull(f, buf[kept:])
		if n > 0 {
			looks(buf[:kept+n])
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		kept = copy(buf, buf[len(buf)-secretOverlap:])
	}
}

// A secret is found wherever it is in a file, also where two pieces meet, and no piece is larger than it has to be.
func TestSecretsAreFoundInLargeFiles(t *testing.T) {
	t.Parallel()
	secret := []byte("alm_" + strings.Repeat("s", secretOverlap-4))
	path := filepath.Join(t.TempDir(), "large")
	for _, at := range []int{0, secretPiece - 1, secretPiece, secretPiece + secretOverlap/2, secretPiece + secretOverlap - 1, secretPiece + secretOverlap, 3*secretPiece - 7, 9 << 20} {
		text := make([]byte, 9<<20+len(secret))
		copy(text[at:], secret)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		found, read := false, 0
		err := inPieces(path, func(text []byte) {
			found, read = found || bytes.Contains(text, secret), read+len(text)
			if len(text) > secretPiece+secretOverlap {
				t.Errorf("a piece of %d bytes", len(text))
			}
		})
		if err != nil || !found || read < len(text) {
			t.Errorf("at %d of %d: found %v, %d bytes were read, %v", at, len(text), found, read, err)
		}
	}
	if err := inPieces(filepath.Join(t.TempDir(), "none"), nil); err != nil {
		t.Error(err)
	}
}
