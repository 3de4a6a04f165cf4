package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// composed is docker-compose.yml, as far as the test knows it.
type composed struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Entrypoint  []string
		Environment map[string]string
		Volumes     []string
		Configs     []struct{ Source, Target string }
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		Healthcheck struct{ Test []string }
		Restart     string
		MemLimit    string `yaml:"mem_limit"`
		Logging     struct {
			Driver  string
			Options map[string]string
		}
	}
	Volumes map[string]any
	Configs map[string]struct{ File string }
}

func compose(t *testing.T) (c composed, text string) {
	t.Helper()
	data, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c, string(data)
}

// Every command line of docker-compose.yml is one of Almanac's, its settings are known, and what a service names is there.
func TestComposeNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	c, _ := compose(t)
	ours := 0
	for name, s := range c.Services {
		if s.Image == "almanac:dev" && s.Entrypoint == nil && s.Command != nil {
			ours++
			if err := runs(s.Command); err != nil {
				t.Errorf("%s: %v: %v", name, s.Command, err)
			}
		}
		if test := s.Healthcheck.Test; len(test) > 2 && test[1] == "almanac" {
			if err := runs(test[2:]); err != nil {
				t.Errorf("%s: healthcheck %v: %v", name, test, err)
			}
		} else if s.Image == "almanac:dev" && test != nil {
			t.Errorf("%s asks otherwise than by almanac ready: %v", name, test)
		}
		if err := checkEnvironment(environment(s.Environment), true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, v := range s.Volumes {
			if volume, _, _ := strings.Cut(v, ":"); !has(c.Volumes, volume) {
				t.Errorf("%s: no volume %s", name, volume)
			}
		}
		for _, f := range s.Configs {
			if _, err := os.Stat(filepath.Join("../..", c.Configs[f.Source].File)); err != nil || c.Configs[f.Source].File == "" {
				t.Errorf("%s: %s: %v", name, f.Source, err)
			}
		}
		for on, how := range s.DependsOn {
			if !has(c.Services, on) || how.Condition == "service_healthy" && len(c.Services[on].Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s, which is not there or says not how it is", name, on)
			}
		}
	}
	if ours < 5 {
		t.Errorf("%d services are Almanac's", ours)
	}
}

// What runs for long is started again, has bounds of memory and of log, and says how it is. What ends by itself is not started again.
func TestComposeServicesAreBounded(t *testing.T) {
	t.Parallel()
	c, _ := compose(t)
	var ends []string
	for name, s := range c.Services {
		switch s.Restart {
		case "no":
			ends = append(ends, name)
		case "unless-stopped":
			if len(s.Healthcheck.Test) < 2 || s.Healthcheck.Test[0] != "CMD" {
				t.Errorf("%s does not say how it is: %q", name, s.Healthcheck.Test)
			}
		default:
			t.Errorf("%s is started again %q", name, s.Restart)
		}
		if s.MemLimit == "" || s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
			t.Errorf("%s has no bound of its memory (%q) or log (%v)", name, s.MemLimit, s.Logging.Options)
		}
	}
	slices.Sort(ends)
	if want := []string{"cli", "secrets", "setup"}; !slices.Equal(ends, want) {
		t.Errorf("%v end by themselves, want %v", ends, want)
	}
}

// runs reports why a command line is none of Almanac's.
func runs(args []string) error {
	cmd, rest, err := (&app{}).root().Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err == nil && !cmd.Runnable() {
		err = errors.New("it does nothing")
	}
	return err
}

func has[T any](m map[string]T, key string) bool { _, ok := m[key]; return ok }

func environment(m map[string]string) (all []string) {
	for k, v := range m {
		all = append(all, k+"="+v)
	}
	return all
}

// checkAccounts fails unless the file for ClickHouse has each account of the table, with the digest of the password that its part has, and no other.
func checkAccounts(t *testing.T, file string, made map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type account struct {
		XMLName xml.Name
		Remove  string   `xml:"remove,attr"`
		Digest  string   `xml:"password_sha256_hex"`
		Grants  []string `xml:"grants>query"`
	}
	var all struct {
		Users struct {
			Each []account `xml:",any"`
		} `xml:"users"`
	}
	if err := xml.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	got := map[string]account{}
	for _, u := range all.Users.Each {
		got[u.XMLName.Local] = u
	}
	users := access.ClickHouseUsers()
	if got["default"].Remove != "remove" || len(got) != len(users)+1 {
		t.Errorf("the accounts are %v", got)
	}
	for i := range users {
		name := users[i].Name
		secret := strings.TrimSpace(made["clickhouse-"+name])
		if u, err := url.Parse(secret); err == nil && u.User != nil {
			password, _ := u.User.Password()
			secret = u.User.Username() + ":" + password
		}
		password, ok := strings.CutPrefix(secret, name+":")
		if digest := fmt.Sprintf("%x", sha256.Sum256([]byte(password))); !ok || len(password) < 32 || got[name].Digest != digest {
			t.Errorf("%s: the server's digest is %q, of what the part has %s", name, got[name].Digest, digest)
		}
		if want := users[i].Statements([]string{schemas.DefaultDatabase}); !slices.Equal(got[name].Grants, want) {
			t.Errorf("%s may %q, want %q", name, got[name].Grants, want)
		}
	}
}

var secretFile = regexp.MustCompile(`/run/almanac/([a-z.-]+)`)

// What docker-compose.yml runs works together, its commands run by hand: the secrets are made, NATS takes its configuration, and
// an event goes through the gateway into ClickHouse, over TLS and as the users.
func TestComposeRuns(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"openssl", "sha256sum", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("without %s", program)
		}
	}
	c, text := compose(t)
	engine := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	b := newBox(t)
	out, accounts := filepath.Join(b.dir, "run"), filepath.Join(b.dir, "accounts")
	for _, dir := range []string{out, accounts} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../compose/secrets.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(b.dir, "almanac")); err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for round := range 2 { // the second changes nothing
		cmd := exec.CommandContext(t.Context(), "sh", strings.Replace(c.Services["secrets"].Entrypoint[1], c.Services["secrets"].Configs[0].Target, script, 1))
		cmd.Env = append(slices.Clone(b.env), "OUT="+out, "ACCOUNTS="+accounts, "PATH="+b.dir+":"+os.Getenv("PATH"))
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		files, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(out, f.Name()))
			if info, err := f.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: others may read it: %v", f.Name(), err)
			}
			if err != nil || round > 0 && made[f.Name()] != string(data) {
				t.Errorf("%s is another after the second start: %v", f.Name(), err)
			}
			made[f.Name()] = string(data)
		}
	}
	scraper, err := os.ReadFile("../../deploy/prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range secretFile.FindAllStringSubmatch(text+string(scraper), -1) {
		if made[strings.TrimSuffix(m[1], ".")] == "" {
			t.Errorf("nothing makes %s", m[0])
		}
	}

	checkAccounts(t, filepath.Join(accounts, "almanac.xml"), made)

	// The servers are elsewhere here.
	conf := strings.NewReplacer("0.0.0.0:4222", "127.0.0.1:-1", "http: 127.0.0.1:8222\n", "", "/data", filepath.Join(b.dir, "store")).Replace(made["nats.conf"])
	n := startConfigured(t, b.write("nats.conf", conf))
	address := strings.TrimPrefix(n.srv.ClientURL(), "nats://")
	address = strings.TrimPrefix(address, "tls://")
	for name, data := range made {
		if strings.HasPrefix(name, "nats-") {
			b.write(filepath.Join("run", name), strings.Replace(data, "nats:4222", address, 1))
		}
	}
	for _, user := range []string{access.UserSink, access.UserOperator} {
		b.write("run/clickhouse-"+user, engine.HTTPDSNOf(user))
	}
	for _, name := range []string{access.UserReader, access.UserGateway} {
		user, password := engine.Engine.Account(name)
		b.write("run/clickhouse-"+name, user+":"+password)
	}
	listen := embeddedtest.FreeAddress(t)
	place := strings.NewReplacer("/run/almanac", out, "0.0.0.0:7070", listen, "127.0.0.1:7070", listen, "0.0.0.0:4318", "off", "0.0.0.0:4317", "off")
	as := func(service string) *box {
		e := newBox(t)
		for k, v := range c.Services[service].Environment {
			e.env = append(e.env, k+"="+place.Replace(v))
		}
		return e
	}
	command := func(service string) (all []string) {
		for _, a := range c.Services[service].Command {
			if service != "gateway" { // several share an address here
				a = strings.Replace(a, "0.0.0.0:7070", "127.0.0.1:0", 1)
			}
			all = append(all, place.Replace(a))
		}
		return all
	}
	as("setup").ok("", command("setup")...)
	as("cli").ok("", "topics", "apply", "app")
	var running []*daemon
	for _, service := range []string{"router", "sink", "timers", "gateway"} {
		d := as(service).background(command(service)...)
		d.says(`"message":"ready"`)
		running = append(running, d)
	}
	embeddedtest.Eventually(t, maxWait, func() error { // a busy server may not answer it in time
		_, err := as("gateway").try(append(c.Services["gateway"].Healthcheck.Test[2:], "--http", listen)...)
		return err
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(made["tls.crt"]))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	// What changes something asks for the token, from this machine too.
	for token, want := range map[string]int{strings.TrimSpace(made["token"]): http.StatusOK, "none": http.StatusUnauthorized} {
		at, body := "/v1/topics/app/events?ack=stored", `{"message":"hi"}`
		if want != http.StatusOK {
			at, body = "/v1/erasures", `{"topic":"app","user":"u-7"}`
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+listen+at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want && (want != http.StatusOK || resp.StatusCode != http.StatusAccepted) { // accepted, and not stored within a request's time
			t.Errorf("the gateway answered %s, want %d", resp.Status, want)
		}
	}
	for ask, want := range map[string]string{"SELECT currentUser()": access.UserReader, "SELECT count() FROM app": "1"} {
		embeddedtest.Eventually(t, maxWait, func() error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+listen+"/v1/sql?format=TSV", strings.NewReader(ask))
			if err != nil {
				return err
			}
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(made["token"]))
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || strings.TrimSpace(string(text)) != want {
				return fmt.Errorf("%s by the gateway: %s %s, %w; want %s", ask, resp.Status, text, err, want)
			}
			return nil
		})
	}
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/v1/topics": http.StatusForbidden} { // Prometheus' token
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listen+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(made["metrics-token"]))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET %s as Prometheus: %s, want %d", path, resp.Status, want)
		}
	}
	contains(t, as("cli").ok("", "sql", "-o", "ndjson", "SELECT currentUser() AS who"), `"`+access.UserReader+`"`)
	if n := strings.TrimSpace(as("cli").ok("", "query", "app", "--count", "-o", "table")); n != "1" {
		t.Errorf("app has %s events, want 1", n)
	}
	as("cli").ok("", "verify")
	for _, d := range running {
		if code := d.stop(syscall.SIGTERM); code != 0 {
			t.Error(fmt.Errorf("exit %d: %s", code, d.stderr()))
		}
	}
	for _, line := range n.refusals() {
		t.Error(line)
	}
}
