package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/schemas"
)

// attacks are what changes or reads something of a stream, with a body that would do it.
func attacks() map[string]string {
	all := map[string]string{
		"$JS.API.INFO": "", "$JS.API.STREAM.NAMES": "", "$JS.API.STREAM.LIST": "", "$JS.API.META.LEADER.STEPDOWN": "{}",
		"$JS.API.SERVER.REMOVE": `{"peer":"almanac"}`, "$JS.API.ACCOUNT.PURGE.$G": "", "$JS.API.STREAM.CREATE.MINE": `{"name":"MINE","subjects":["mine"]}`,
		"$SYS.REQ.SERVER.PING.VARZ": "", "$SYS.REQ.SERVER.PING.CONNZ": "", "$SYS.REQ.ACCOUNT.PING.CONNZ": "", "$SYS.ACCOUNT.$G.CONNECT": "x",
		"$SRV.PING": "", schemas.DeadSubject("app"): "junk", schemas.ShardSubject("app", 202611, 0): "junk",
	}
	for _, s := range access.Streams {
		for call, body := range map[string]string{
			"STREAM.DELETE." + s: "", "STREAM.PURGE." + s: "", "STREAM.UPDATE." + s: `{"name":"` + s + `","max_msgs":1}`, "STREAM.CREATE." + s: `{"name":"` + s + `"}`,
			"STREAM.MSG.DELETE." + s: `{"seq":1}`, "STREAM.MSG.GET." + s: `{"seq":1}`, "DIRECT.GET." + s: `{"seq":1}`, "STREAM.SNAPSHOT." + s: `{"deliver_subject":"_INBOX.x"}`,
			"STREAM.RESTORE." + s: `{}`, "STREAM.LEADER.STEPDOWN." + s: "", "STREAM.PEER.REMOVE." + s: `{"peer":"almanac"}`,
			"CONSUMER.CREATE." + s: `{"stream_name":"` + s + `","config":{"deliver_policy":"all"}}`, "CONSUMER.CREATE." + s + ".mine": `{"stream_name":"` + s + `","config":{"name":"mine"}}`,
			"CONSUMER.DURABLE.CREATE." + s + ".mine": `{"stream_name":"` + s + `","config":{"durable_name":"mine"}}`, "CONSUMER.NAMES." + s: "", "CONSUMER.LIST." + s: "",
			"CONSUMER.DELETE." + s + ".mine": "", "CONSUMER.MSG.NEXT." + s + ".mine": "",
		} {
			all["$JS.API."+call] = body
		}
	}
	for _, key := range []string{schemas.TopicKey("app"), schemas.LeaseKey(schemas.RoleRouter, "mine"), "shards.app.2026-11.0", "heads.app.2026-11", "engine", "REMOVALS.app"} {
		all[schemas.KVSubject(key)], all[schemas.CopySubject(key)] = `{"name":"app"}`, `{"name":"app"}`
	}
	return all
}

// A client of an up's NATS without credentials sends events. Nothing else that it can name is heard, changed or taken away,
// and the parts work on.
func TestUpAndClientsWithoutCredentials(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.hostile = true
	b.up()
	b.ok("1\n2\n3\n", "send", "app")
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	checkModes(t, b.data())
	operator := b.connect()
	if login := strings.TrimSpace(b.ok("", "config", "nats", "--print-url")); login != b.natsLogin() || !strings.Contains(login, access.UserOperator+":") {
		t.Errorf("config nats prints %q", login)
	}
	before := configs(t, operator)

	nc, err := nats.Connect(a.NATS, nats.Timeout(maxWait), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish(schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0), []byte(`{"message":"by hand"}`)); err != nil {
		t.Fatal(err)
	}
	answers, err := nc.SubscribeSync("_INBOX.mine.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []string{">", "events.>", "$KV.>", "$SYS.>", "$JS.>", "shards.>", "members.>", schemas.InboxPrefix(access.UserSink) + ".>"} {
		if _, err := nc.Subscribe(all, func(m *nats.Msg) {
			if !strings.HasPrefix(m.Subject, "_INBOX.mine.") {
				t.Errorf("it heard %s", m.Subject)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for subject, body := range attacks() {
		if err := nc.PublishRequest(subject, "_INBOX.mine."+strings.ReplaceAll(subject, ".", "-"), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(maxWait); err != nil { // it was all refused by then
		t.Fatal(err)
	}
	b.ok("5\n", "send", "app")
	if n := strings.TrimSpace(b.ok("", "query", "app", "--count", "-o", "table")); n != "5" {
		t.Errorf("app has %s events, want 5", n)
	}
	b.ok("", "verify")
	if letters := strings.TrimSpace(b.ok("", "dead", "ls", "-o", "json")); letters != "[]" {
		t.Errorf("dead letters: %s", letters)
	}
	if after := configs(t, operator); !reflect.DeepEqual(after, before) {
		t.Errorf("the streams were\n%+v\nand are\n%+v", before, after)
	}
	for {
		m, err := answers.NextMsg(time.Millisecond)
		if err != nil {
			break
		}
		t.Errorf("%s was answered: %.200s", m.Subject, m.Data)
	}
	for name, user := range map[string]nats.Option{"a wrong password": nats.UserInfo(access.UserOperator, "x"), "an unknown user": nats.UserInfo("x", "x"), "a token": nats.Token("x")} {
		if nc, err := nats.Connect(a.NATS, nats.Timeout(maxWait), user); err == nil {
			nc.Close()
			t.Errorf("%s was let in", name)
		}
	}
}

// configs are the configurations of all streams, with the number of their consumers that are not of an Almanac.
func configs(t *testing.T, nc *nats.Conn) map[string]jetstream.StreamConfig {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(maxWait))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]jetstream.StreamConfig{}
	list := js.ListStreams(t.Context())
	for s := range list.Info() {
		all[s.Config.Name] = s.Config
		stream, err := js.Stream(t.Context(), s.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Consumer(t.Context(), "mine"); err == nil {
			t.Errorf("%s has the consumer mine", s.Config.Name)
		}
	}
	if list.Err() != nil || len(all) != len(access.Streams) {
		t.Errorf("streams: %v, %v", all, list.Err())
	}
	return all
}

// checkModes finds files with passwords of a data directory that others may read.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == "passwords.json" || d.Name() == filepath.Base(embedded.AddressesFile(dir))) {
			found++
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v, want mode 0600", path, info.Mode(), err)
			}
		}
		return nil
	})
	if err != nil || found != 3 {
		t.Errorf("%d files with passwords, %v", found, err)
	}
}
