package lines

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// Another body under a key is refused, and what differs is said. A repeat is answered as the first time, also where
// the topic takes by then what it refused. A key under which nothing was stored is free.
func TestKeyWithAnotherBody(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.Fields = []schemas.Field{{Name: "n", Type: schemas.TypeInt64}}
	e, post := serveTopic(t, Config{}, topic)
	send := func(query, body string) (int, Answer) {
		t.Helper()
		return post(query, "application/x-ndjson", strings.NewReader(body), "Idempotency-Key", "k")
	}
	const good, bad = `{"ts":"2026-11-03T00:00:00Z","n":1}`, `{"n":2}`
	if status, a := send("", bad); status != http.StatusBadRequest || a.Accepted != 0 {
		t.Fatalf("all refused: %d %+v", status, a)
	}
	if status, a := send("?refuse=all", good+"\n"+bad); status != http.StatusBadRequest || a.Accepted != 0 {
		t.Fatalf("all or none: %d %+v", status, a)
	}
	status, first := send("", good+"\n"+bad)
	if status != http.StatusOK || first.Accepted != 1 || first.Total != 1 || first.Repeated {
		t.Fatalf("in part: %d %+v", status, first)
	}
	for try, query := range []string{"", "", "?ack=none"} {
		want := http.StatusOK
		if query != "" {
			want = http.StatusAccepted
		}
		if status, again := send(query, good+"\n"+bad); status != want || again.Repeated != (query == "") || again.Accepted != 1 || !reflect.DeepEqual(again.Refused, first.Refused) {
			t.Errorf("repeat %d: %d %+v, expected what came first: %+v", try, status, again, first)
		}
	}
	for name, c := range map[string]struct{ query, body, says string }{
		"corrected":        {"", good + "\n" + `{"ts":"2026-11-03T00:00:00Z","n":2}`, "they differ from line 2 on"},
		"more":             {"", good + "\n" + bad + "\n" + good, "they differ from line 2 on"}, // its line end
		"other events":     {"", `{"ts":"2026-11-03T00:00:00Z","n":3}`, "its body has 35 bytes, and had 43; they differ from line 1 on"},
		"other parameters": {"?service=s", good + "\n" + bad, "parameters"},
	} {
		status, a := send(c.query, c.body)
		if status != http.StatusUnprocessableEntity || a.Error == nil || a.Error.Code != "key_used" || !strings.Contains(a.Error.Message, c.says) {
			t.Errorf("%s: %d %+v %+v", name, status, a, a.Error)
		}
	}
	if n := len(e.Events("app")); n != 1 {
		t.Errorf("%d events are stored, expected 1", n)
	}
}

// A repeat that a changed topic would take otherwise is answered as the first time, and stores nothing more.
func TestKeyedRepeatOfAChangedTopic(t *testing.T) {
	t.Parallel()
	k := newKeys(time.Now)
	f := k.formOf(url.Values{"ack": {"none"}}, "", []byte("a\nb"))
	mine, first, err := k.claim("api", "app", "k", f)
	if err != nil || !first {
		t.Fatal(first, err)
	}
	was := Answer{Accepted: 1, Total: 1, Refused: []Refused{{Line: 2, Reason: "no-time", Message: "m"}}}
	if k.again(mine, &was) != nil {
		t.Error("a request under way has an answer")
	}
	k.answered(mine, &was)
	mine, first, err = k.claim("api", "app", "k", k.formOf(url.Values{"ack": {"stored"}}, "", []byte("a\nb")))
	if err != nil || first || k.again(mine, &was) != nil {
		t.Fatalf("the same again: first %t, %v", first, err)
	}
	for name, a := range map[string]Answer{
		"both are taken": {Accepted: 2}, "none is": {Total: 2}, "another is refused": {Accepted: 1, Total: 1, Refused: []Refused{{Line: 1, Reason: "no-time", Message: "m"}}},
	} {
		if got := k.again(mine, &a); got == nil || got.Accepted != 1 || !got.Repeated || !reflect.DeepEqual(got.Refused, was.Refused) {
			t.Errorf("%s: answered %+v", name, got)
		}
	}
}

// What is remembered of keys is bounded in time and number.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	k := newKeys(func() time.Time { return now })
	claim := func(key, body string) error {
		_, _, err := k.claim("api", "app", key, k.formOf(url.Values{}, "", []byte(body)))
		return err
	}
	for i := range maxKeys + 10 {
		if err := claim(fmt.Sprint(i), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.of) > maxKeys || len(k.by["api"].queue) > maxKeys || k.bytes > maxKeyBytes {
		t.Errorf("%d keys and %d bytes are remembered", len(k.of), k.bytes)
	}
	var refused *request.Error
	if err := claim(fmt.Sprint(maxKeys), "b"); !errors.As(err, &refused) {
		t.Errorf("another body: %v", err)
	}
	now = now.Add(schemas.GivenFor)
	if err := claim(fmt.Sprint(maxKeys), "b"); err != nil || len(k.of) != 1 {
		t.Errorf("after %s: %v, %d keys", schemas.GivenFor, err, len(k.of))
	}
	k.drop(k.by["api"].queue[0])
	if err := claim("again", "c"); err != nil || k.bytes != k.by["api"].queue[len(k.by["api"].queue)-1].size() {
		t.Errorf("%v, %d bytes are counted of one key", err, k.bytes)
	}
}

// Keys are those of their writer: another's request under the same key is another request. A writer of many keys has its own
// forgotten, and those of others stay.
func TestKeysOfWriters(t *testing.T) {
	t.Parallel()
	k := newKeys(time.Now)
	f := func(body string) form { return k.formOf(url.Values{}, "", []byte(body)) }
	mine, first, err := k.claim("api", "app", "k", f("mine"))
	if err != nil || !first {
		t.Fatal(first, err)
	}
	if other, first, err := k.claim("web", "app", "k", f("other")); err != nil || !first || other == mine {
		t.Errorf("another writer: first %t, %v", first, err)
	}
	if _, _, err := k.claim("api", "app", "k", f("other")); err == nil {
		t.Error("another body under the same key is taken")
	}
	for i := range maxKeys + 10 {
		if _, _, err := k.claim("flood", "app", fmt.Sprint(i), f("x")); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.of) > maxKeys || k.bytes > maxKeyBytes+1000 {
		t.Errorf("%d keys of %d bytes", len(k.of), k.bytes)
	}
	if s, first, err := k.claim("api", "app", "k", f("mine")); err != nil || first || s != mine {
		t.Errorf("beside a writer of many keys: first %t, %v", first, err)
	}
	bytes := 0
	for _, w := range k.by {
		bytes += w.bytes
	}
	if bytes != k.bytes {
		t.Errorf("%d bytes of writers, and %d of all", bytes, k.bytes)
	}
}
