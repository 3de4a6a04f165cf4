package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/almanac-events/almanac/internal/access"
)

// configured is a NATS server elsewhere, with the users that `almanac config nats` prints.
type configured struct {
	t    *testing.T
	file string
	srv  *server.Server

	mu  sync.Mutex
	log bytes.Buffer
}

func newConfigured(t *testing.T) *configured {
	t.Helper()
	c := &configured{t: t, file: filepath.Join(t.TempDir(), "nats.conf")}
	c.write(nil)
	c.start()
	return c
}

// startConfigured starts a server by a configuration of its own.
func startConfigured(t *testing.T, file string) *configured {
	t.Helper()
	c := &configured{t: t, file: file}
	c.start()
	return c
}

func (c *configured) start() {
	t := c.t
	t.Helper()
	o, err := server.ProcessConfigFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs = true
	if c.srv, err = server.NewServer(o); err != nil {
		t.Fatal(err)
	}
	c.srv.SetLoggerV2(c, false, false, false)
	c.srv.Start()
	t.Cleanup(func() {
		c.srv.Shutdown()
		c.srv.WaitForShutdown()
	})
	if !c.srv.ReadyForConnections(maxWait) {
		t.Fatal("the server is not ready")
	}
}

// write writes the configuration. change may change what the users may do.
func (c *configured) write(change func(string) string) {
	c.t.Helper()
	users := access.NATSConfig()
	if change != nil {
		users = change(users)
	}
	for _, u := range access.NATSUsers() { // a test cannot change its environment and run beside others
		users = strings.ReplaceAll(users, "$"+access.NATSPasswordKey(u.Name)+"\n", "of-"+u.Name+"\n")
	}
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\nmax_payload: 1MB\njetstream { store_dir: %q, max_file_store: 50GB }\n%s", filepath.Join(filepath.Dir(c.file), "store"), users)
	if err := os.WriteFile(c.file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// without takes one right away from a user, while the server runs: it may no longer publish on what the filter matches.
func (c *configured) without(user, filter string) {
	c.t.Helper()
	c.write(func(text string) string {
		before, rest, ok := strings.Cut(text, "user: "+user+"\n")
		own, others, ok2 := strings.Cut(rest, "subscribe {")
		quoted := fmt.Sprintf("            %q\n", filter)
		if !ok || !ok2 || strings.Count(own, quoted) == 0 {
			c.t.Fatalf("%s has no right to %s", user, filter)
		}
		return before + "user: " + user + "\n" + strings.ReplaceAll(own, quoted, "") + "subscribe {" + others
	})
	c.reload()
}

// deaf takes a line away from what a user may subscribe to and answer, while the server runs.
func (c *configured) deaf(user, line string) {
	c.t.Helper()
	c.write(func(text string) string {
		before, rest, ok := strings.Cut(text, "user: "+user+"\n")
		publishes, rest, ok2 := strings.Cut(rest, "subscribe {")
		own, others, ok3 := strings.Cut(rest, "\n      }\n")
		left := regexp.MustCompile("(?m)^ *"+regexp.QuoteMeta(line)+"\n").ReplaceAllString(own, "")
		if !ok || !ok2 || !ok3 || left == own {
			c.t.Fatalf("%s has no line %s", user, line)
		}
		return before + "user: " + user + "\n" + publishes + "subscribe {" + left + "\n      }\n" + others
	})
	c.reload()
}

// whole gives all users what the table says.
func (c *configured) whole() {
	c.t.Helper()
	c.write(nil)
	c.reload()
}

func (c *configured) reload() {
	c.t.Helper()
	if err := c.srv.Reload(); err != nil {
		c.t.Fatal(err)
	}
}

// login is the URL of a user.
func (c *configured) login(user string) string {
	u, err := url.Parse(c.srv.ClientURL())
	if err != nil {
		c.t.Fatal(err)
	}
	u.User = url.UserPassword(user, "of-"+user)
	return u.String()
}

// refusals are what the server has refused.
func (c *configured) refusals() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.Lines(c.log.String()) {
		if strings.Contains(line, "Violation") || strings.Contains(line, "authentication error") {
			all = append(all, line)
		}
	}
	return all
}

func (c *configured) say(format string, v ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(&c.log, time.Now().Format(time.TimeOnly)+" "+format+"\n", v...)
}

func (c *configured) Noticef(string, ...any)         {}
func (c *configured) Warnf(format string, v ...any)  { c.say(format, v...) }
func (c *configured) Fatalf(format string, v ...any) { c.say(format, v...) }
func (c *configured) Errorf(format string, v ...any) { c.say(format, v...) }
func (c *configured) Debugf(string, ...any)          {}
func (c *configured) Tracef(string, ...any)          {}
