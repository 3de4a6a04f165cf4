package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// Parts whose passwords are in files say them nowhere: not in a log, an answer, their arguments, their environment or their
// data directory. Neither where servers refuse them, nor where one is away, nor where a verb is refused.
func TestSecretsOfParts(t *testing.T) {
	t.Parallel()
	const mark = "MARKhush"
	n := newConfigured(t)
	engine, err := url.Parse(embeddedtest.Start(t, embeddedtest.WithoutNATS()).HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	setup := newBox(t, "ALMANAC_NATS="+n.login(access.UserSetup))
	setup.ok("", "setup")
	wrong := *engine
	wrong.User = url.UserPassword("sink", mark)
	refusing := func(string) string {
		u, err := url.Parse(n.srv.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("router", mark)
		return u.String()
	}
	all := marked(mark)
	servers := map[string]struct {
		nats       func(user string) string
		clickhouse string
	}{
		"NATS refuses":       {refusing, wrong.String()},
		"ClickHouse refuses": {n.login, wrong.String()},
		"ClickHouse is away": {n.login, all["clickhouse"]},
	}
	for name, to := range servers {
		for user, args := range map[string][]string{access.UserRouter: {"router"}, access.UserSink: {"sink"}, access.UserTimers: {"timers", "run"}, access.UserGateway: {"gateway", "--otlp-http", "off", "--otlp-grpc", "off"}, access.UserOperator: {"doctor"}} {
			if name != "NATS refuses" && (user == access.UserRouter || user == access.UserTimers) {
				continue // they know no ClickHouse
			}
			t.Run(name+", "+user, func(t *testing.T) {
				t.Parallel()
				b := newBox(t, "ALMANAC_LOG_FORMAT=json", "ALMANAC_LOG_LEVEL=debug")
				given := maps.Clone(all)
				given["nats"], given["clickhouse"] = to.nats(user), to.clickhouse
				for key, text := range given {
					b.env = append(b.env, findKey(key).env()+"_FILE="+b.write(filepath.Join("secrets", key), text+"\n"))
				}
				hushed := []string{mark, "of-" + user}
				finds := func(where string, text []byte) {
					t.Helper()
					for _, secret := range hushed {
						if bytes.Contains(text, []byte(secret)) {
							t.Errorf("%s is in %s:\n%.2000s", secret, where, text)
						}
					}
				}
				if user == access.UserOperator {
					for _, verb := range []string{"doctor", "query app", "sql SELECT(1)", "verify", "send app", "topics ls", "config show"} {
						r := b.run("x\n", strings.Fields(verb)...)
						finds(verb, []byte(r.out+r.err))
					}
					return
				}
				address := embeddedtest.FreeAddress(t)
				d := b.background(append(args, "--http", address)...)
				ended := func() bool {
					select {
					case <-d.done:
						return true
					default:
						return false
					}
				}
				embeddedtest.Eventually(t, maxWait, func() error {
					if ended() || strings.Contains(d.stderr(), "trying again") || strings.Contains(d.stderr(), `"message":"ready"`) {
						return nil
					}
					return errors.New("it says nothing")
				})
				if !ended() {
					for _, file := range []string{"cmdline", "environ"} {
						text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", d.cmd.Process.Pid, file))
						if err == nil {
							finds(file, text)
						}
					}
					local, err := os.ReadFile(filepath.Join(b.data(), embedded.LocalTokenName))
					if err != nil {
						t.Fatal(err)
					}
					hushed = append(hushed, strings.TrimSpace(string(local)))
					for _, path := range []string{"/metrics", "/readyz", "/version", "/v1/topics"} {
						req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
						if err != nil {
							t.Fatal(err)
						}
						req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(local)))
						resp, err := http.DefaultClient.Do(req)
						if err != nil {
							continue // it has ended
						}
						text, err := io.ReadAll(resp.Body)
						_ = resp.Body.Close()
						if err == nil {
							finds(path, text)
						}
					}
				}
				finds("the log", []byte(d.stderr()))
				checkSecretFiles(t, b.data(), finds)
			})
		}
	}
}
