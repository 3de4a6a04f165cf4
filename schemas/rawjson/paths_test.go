package rawjson

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func testPaths() *Paths {
	return NewPaths(map[string][]string{
		schemas.ColTs: {"@timestamp", "time"}, schemas.ColLevel: {"level", "log.level"}, schemas.ColUserID: {"user_id", "user.id"},
		schemas.ColService: {"service.name"}, schemas.ColMessage: {"message", "msg"},
	})
}

func attrsText(ev *schemas.Event) string {
	var b strings.Builder
	for i := range ev.Attrs {
		b.WriteString(ev.Attrs[i].Key + "=" + ev.Attrs[i].Text() + ";")
	}
	return b.String()
}

func TestFromRecordByPaths(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, object string
		pairs        []Pair
		want         schemas.Event
		attrs        string
	}{
		{name: "the preferred path wins, the other stays",
			object: `{"user":{"id":"b","name":"n"},"user_id":"a","msg":"second","message":"first"}`,
			want:   schemas.Event{UserID: "a", Message: "first"}, attrs: "user.id=b;user.name=n;msg=second;"},
		{name: "nested and dotted are one",
			object: `{"service.name":"web","log":{"level":"info"}}`, want: schemas.Event{Service: "web", Level: "info"}},
		{name: "a level that is stored as another word stays as text",
			object: `{"level":"INFO"}`, want: schemas.Event{Level: "info"}, attrs: "level_text=INFO;"},
		{name: "an id is not an event's id",
			object: `{"id":"0190b0c4-0000-7000-8000-000000000001"}`, attrs: "id=0190b0c4-0000-7000-8000-000000000001;"},
		{name: "a time by chance stays an attribute",
			object: `{"time":"12ms","@timestamp":"2026-11-20T10:00:00Z"}`, want: schemas.Event{Time: at}, attrs: "time=12ms;"},
		{name: "texts come before members",
			pairs: []Pair{{"level", "warn"}, {"a", "1"}}, object: `{"level":30,"a":2}`,
			want: schemas.Event{Level: "warn"}, attrs: "a=1;level=30;a#2=2;"},
		{name: "what two objects say alike is kept once",
			object: `{"level":"info","a":"1","b":"2"} {"level":"info","a":"1","b":"3"}`,
			want:   schemas.Event{Level: "info"}, attrs: "a=1;b=2;b#2=3;"},
		{name: "texts alone", pairs: []Pair{{"message", "m"}}, want: schemas.Event{Message: "m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ev, err := Keys{Paths: testPaths()}.FromRecord(c.pairs, strings.Fields(c.object)...)
			if err != nil {
				t.Fatal(err)
			}
			if got := attrsText(&ev); got != c.attrs {
				t.Errorf("attributes %q, expected %q", got, c.attrs)
			}
			if !ev.Time.Equal(c.want.Time) || !ev.ID.IsZero() || ev.Level != c.want.Level || ev.UserID != c.want.UserID ||
				ev.Service != c.want.Service || ev.Message != c.want.Message {
				t.Errorf("%+v, expected %+v", ev, c.want)
			}
		})
	}
}

func TestFromRecordKeepsTheFieldsOfALargeRecord(t *testing.T) {
	var b strings.Builder
	for range 2 * schemas.MaxAttrs {
		b.WriteString(`"k":1,`)
	}
	ev, err := Keys{Paths: testPaths()}.FromRecord(nil, "{"+b.String()+`"@timestamp":"2026-11-20T10:00:00Z","level":"ERROR"}`)
	if err != nil {
		t.Fatal(err)
	}
	if ev.Time.IsZero() || ev.Level != "error" || len(ev.Attrs) != schemas.MaxAttrs || ev.Attrs[schemas.MaxAttrs-1].Key != schemas.AttrRest {
		t.Errorf("time %s, level %q, %d attributes, the last is %q", ev.Time, ev.Level, len(ev.Attrs), ev.Attrs[len(ev.Attrs)-1].Key)
	}
}

func TestFromRecordRefuses(t *testing.T) {
	for object, want := range map[string]error{
		`{"a":`: schemas.ErrNotJSON, ``: schemas.ErrNotJSON, `[1]`: schemas.ErrJSONEvent, `null`: schemas.ErrJSONEvent, `{"@timestamp":"noon"}`: schemas.ErrJSONEvent,
	} {
		if _, err := (Keys{Paths: testPaths()}).FromRecord(nil, object); !errors.Is(err, want) {
			t.Errorf("%s: %v, expected %v", object, err, want)
		}
	}
}

func TestALongNameOfAnObjectIsNotRepeated(t *testing.T) {
	name := strings.Repeat("n", 400<<10)
	members := strings.TrimSuffix(strings.Repeat(`"a":1,`, 2000), ",")
	object := []byte(`{"` + name + `":{` + members + `},"b":2}`)
	ev, err := Parse(object)
	if err != nil {
		t.Fatal(err)
	}
	if n := ev.Bytes(); n > 2*len(object) {
		t.Errorf("%d bytes of JSON became an event of %d bytes", len(object), n)
	}
	if rest := ev.Attrs[len(ev.Attrs)-1]; rest.Key != schemas.AttrRest || rest.Text() != `{"`+name+`":{`+members+`}}` {
		t.Errorf("the last attribute is %q with %d bytes", rest.Key, len(rest.Text()))
	}
}
