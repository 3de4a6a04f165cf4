package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// Config check names what a start refuses, and a start refuses what config check names. It leaves nothing.
func TestConfigCheckRehearsesTheStart(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	go func() { // it is another program
		for {
			c, err := taken.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	port, free := taken.Addr().String(), embeddedtest.FreeAddress(t)
	ca, dir := certstest.New(t, "ca"), t.TempDir()
	pair := func(name string, ends time.Time) (cert, key string) {
		c, k := ca.Issue(t, name, ends)
		return certstest.Write(t, filepath.Join(dir, name+".crt"), c), certstest.Write(t, filepath.Join(dir, name+".key"), k)
	}
	cert, key := pair("good", time.Now().Add(time.Hour*24*365))
	_, other := pair("other", time.Now().Add(time.Hour*24*365))
	ended, endedKey := pair("ended", time.Now().Add(-time.Hour))
	soon, soonKey := pair("soon", time.Now().Add(time.Hour*24*5))
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open := write("open.yaml", "tokens: []\n", 0o644)
	broken := write("broken.yaml", "tokens: [", 0o600)
	file := write("file", "", 0o600)
	foreign := filepath.Join(dir, "foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	write("foreign/thesis.txt", "precious", 0o600)
	for name, c := range map[string]struct {
		file string
		data string // another directory than the box's
		says []string
		// good: a warning is all, and a start would go on. late: a start says another fault first, or finds it after its servers began.
		good, late bool
	}{
		"a port that is taken":        {file: "http: " + port, says: []string{"http: port in use", port[10:]}},
		"NATS's port is taken":        {file: "nats: " + port, says: []string{"nats: port in use", port[10:]}, late: true},
		"a port of UDP":               {file: "syslog_udp: 127.0.0.1:99999", says: []string{"99999"}},
		"one address for two":         {file: "http: " + free + "\nelastic: " + free, says: []string{"elastic: port in use"}},
		"open without TLS":            {file: "http: 0.0.0.0:0", says: []string{"no TLS and no token"}},
		"NATS open without TLS":       {file: "nats: 0.0.0.0:0", says: []string{"nats"}, late: true},
		"no certificate":              {file: "tls_cert: " + dir + "/none.crt\ntls_key: " + key, says: []string{"tls_cert and tls_key", "none.crt"}},
		"no key":                      {file: "tls_cert: " + cert, says: []string{"tls_cert and tls_key", "both"}},
		"the key of another":          {file: "tls_cert: " + cert + "\ntls_key: " + other, says: []string{"private key does not match"}},
		"a certificate that ended":    {file: "tls_cert: " + ended + "\ntls_key: " + endedKey, says: []string{"ended", "renew it"}},
		"syslog's":                    {file: "syslog_tls: 127.0.0.1:0\nsyslog_cert: " + cert + "\nsyslog_key: " + other, says: []string{"syslog_cert and syslog_key"}},
		"a file that is not a CA":     {file: "tls_cert: " + cert + "\ntls_key: " + key + "\ntls_client_ca: " + file, says: []string{"no certificate in the file of the CA"}},
		"tokens for all to read":      {file: "tokens_file: " + open, says: []string{"open.yaml may be read by others", "chmod 600"}},
		"broken tokens":               {file: "tokens_file: " + broken, says: []string{"broken.yaml"}},
		"a directory of others":       {data: foreign, says: []string{"not an Almanac data directory", "thesis.txt"}},
		"a directory below a file":    {data: file + "/data", says: []string{"the data directory"}},
		"a cold directory within":     {data: dir + "/within", file: "cold_dir: " + dir + "/within/clickhouse/cold", says: []string{"unusable cold directory"}, late: true},
		"a cold directory of others":  {file: "cold_dir: " + foreign, says: []string{"thesis.txt", "cold_dir"}, late: true},
		"two sources of certificates": {file: "acme_hosts: a.example.com\ntls_cert: " + cert + "\ntls_key: " + key, says: []string{"acme_hosts and tls_cert"}},
		"several at once":             {file: "http: " + port + "\ntokens_file: " + open, data: foreign, says: []string{"http: port in use", "open.yaml", "thesis.txt"}, late: true},
		"a NATS's certificate":        {file: "nats: tls://127.0.0.1:1\nnats_cert: " + cert + "\nnats_key: " + other, says: []string{"nats_cert and nats_key"}, late: true},
		"a NATS's old certificate":    {file: "nats: tls://127.0.0.1:1\nnats_cert: " + ended + "\nnats_key: " + endedKey, says: []string{"nats_cert and nats_key", "ended", "renew it"}, late: true},
		"no credentials of a NATS":    {file: "nats: tls://127.0.0.1:1\nnats_creds: " + dir + "/none.creds", says: []string{"nats_creds", "none.creds"}, late: true},
		"credentials of no NATS":      {file: "nats: tls://127.0.0.1:1\nnats_creds: " + broken, says: []string{"nats_creds", "broken.yaml does not have a user's seed"}, late: true},
		"no CA of a ClickHouse":       {file: "clickhouse: https://127.0.0.1:1/almanac\nclickhouse_ca: " + dir + "/none.crt", says: []string{"clickhouse_ca", "none.crt"}},
		"no CA of clients":            {file: "tls_cert: " + cert + "\ntls_key: " + key + "\ntls_client_ca: " + dir + "/none.crt", says: []string{"tls_cert and tls_key", "none.crt"}},
		"a NATS's CA":                 {file: "nats: tls://127.0.0.1:1\nnats_ca: " + file, says: []string{"nats_ca"}, late: true},

		"a certificate near its end":   {file: "tls_cert: " + soon + "\ntls_key: " + soonKey, says: []string{"warning: the certificate of tls ends", "in 5 days", "is good"}, good: true},
		"certificates of an authority": {file: "acme_hosts: a.example.com\nhttp: 127.0.0.1:0", says: []string{"is good"}, good: true},
		"more than the disk has":       {file: "events_bytes: 4000TiB\nshards_bytes: 4000TiB", says: []string{"warning: ", "8000 TiB", "is good"}, good: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "ALMANAC_PORTS=auto")
			b.write("almanac.yaml", c.file+"\n")
			if c.data != "" {
				b.env = append(b.env, "ALMANAC_DATA="+c.data)
			}
			want := exitConfig
			if c.good {
				want = exitOK
			}
			r := b.run("", "config", "check")
			if r.code != want {
				t.Errorf("exit %d, want %d:\n%s", r.code, want, r.err)
			}
			contains(t, r.err, c.says...)
			if made, err := os.ReadDir(b.data()); err == nil {
				t.Errorf("it made %v", made)
			}
			if c.good || c.late {
				return
			}
			if r := b.run("", "up"); r.code == exitOK || !strings.Contains(r.err, c.says[0]) {
				t.Errorf("up: exit %d, and says otherwise:\n%s", r.code, r.err)
			}
		})
	}
}

// Each setting that names an address to listen on is tried, but NATS's, which may be a URL.
func TestListenersAreAll(t *testing.T) {
	t.Parallel()
	for i := range keys {
		if !strings.Contains(keys[i].usage, "`ADDRESS`") {
			continue
		}
		var s settings
		if err := keys[i].set(&s, "127.0.0.1:9"); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, l := range listeners {
			found = found || l.name == keys[i].name && l.text(&s) == "127.0.0.1:9"
		}
		if !found {
			t.Errorf("%s is not among the listeners", keys[i].name)
		}
	}
	if len(listeners) < 7 {
		t.Error("listeners are missing")
	}
}

// A port that is taken is right where the process of these settings has it. Where it is not known which ports that has, what may be another
// program's is a warning, and never silent.
func TestTakenPorts(t *testing.T) {
	t.Parallel()
	inUse := fmt.Errorf("otlp_http: %w: 127.0.0.1:4318", embedded.ErrPortInUse)
	own := map[string]bool{"127.0.0.1:8428": true}
	for name, c := range map[string]struct {
		rehearsal
		err   error
		port  int
		taken bool
		warns int
	}{
		"no process":                     {rehearsal{}, inUse, 4318, false, 0},
		"a port of an up":                {rehearsal{alive: "up", own: own}, inUse, 8428, true, 0},
		"another port beside an up":      {rehearsal{alive: "up", own: own}, inUse, 4318, false, 0},
		"the port by which it was found": {rehearsal{alive: "it", own: own, partly: true}, inUse, 8428, true, 0},
		"another port of a part":         {rehearsal{alive: "it", own: own, partly: true}, inUse, 4318, true, 1},
		"another fault":                  {rehearsal{alive: "it", own: own, partly: true}, errors.New("no such host"), 8428, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.rehearsal
			if got := r.taken(c.err, "127.0.0.1", c.port); got != c.taken || len(r.warnings) != c.warns {
				t.Errorf("taken: %t, warnings: %q; want %t and %d", got, r.warnings, c.taken, c.warns)
			}
		})
	}
}
