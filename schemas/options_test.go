package schemas

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Every field of a topic that people write is an option, so that it has a flag, a key, a
// default and a check.
func TestOptionsAreWhole(t *testing.T) {
	var keys, flags []string
	for _, o := range Options {
		if o.Flag == "" || o.Usage == "" || slices.Contains(keys, o.Key) || slices.Contains(flags, o.Flag) {
			t.Errorf("option %q: it must have help, and a key and a flag of its own", o.Key)
		}
		keys, flags = append(keys, o.Key), append(flags, o.Flag)
		topic := NewTopic("app")
		if v := o.value(&topic); o.Default != nil && reflect.TypeOf(o.Default) != v.Type() {
			t.Errorf("option %q: the default is a %T, and the value a %s", o.Key, o.Default, v.Type())
		}
	}
	groups := []string{"rotate", "anonymise", "documents"}
	for _, key := range yamlKeys(reflect.TypeFor[Topic](), "", groups) {
		if !slices.Contains(keys, key) && key != "name" {
			t.Errorf("%s is written in the settings file and is not in Options", key)
		}
	}
}

// yamlKeys are the keys of a struct's fields, and those of the groups within.
func yamlKeys(of reflect.Type, prefix string, groups []string) (keys []string) {
	for field := range of.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case key == "-":
		case slices.Contains(groups, key):
			keys = append(keys, yamlKeys(field.Type, key+".", nil)...)
		default:
			keys = append(keys, prefix+key)
		}
	}
	return keys
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		kind   Kind
		change func(*Topic)
		text   string
	}{
		"a log with ids of documents": {kinds.Log, func(t *Topic) { t.Documents.IDs = IDsAny }, "documents.ids: only a topic of kind document has it"},
		"ids of no kind":              {kinds.Document, func(t *Topic) { t.Documents.IDs = "mine" }, `ids is "mine", it must be any or generated`},
		"a long user field":           {kinds.Document, func(t *Topic) { t.Documents.UserField = strings.Repeat("x", MaxAttrKeyBytes+1) }, "user_field has"},
		"too large bodies":            {kinds.Document, func(t *Topic) { t.Documents.MaxBytes = MaxDocumentBytes + 1 }, "max_bytes is"},
		"stale SQL":                   {kinds.Log, func(t *Topic) { t.SQLFresh = 2 * time.Hour }, "sql_fresh is 2h0m0s, it must be 1s to 1h0m0s"},
		"a span back in time":         {kinds.Log, func(t *Topic) { t.Rotate.Span = -time.Hour }, "rotate span is -1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := NewTopicOf(c.kind, "app")
			c.change(&topic)
			if err := topic.Validate(); err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %q", err, c.text)
			}
		})
	}
	t.Run("defaults", func(t *testing.T) {
		d := NewTopicOf(kinds.Document, "notes").Documents
		if want := (Documents{IDs: IDsAny, HotFor: DefaultHotFor, MaxDocuments: DefaultMaxDocuments, MaxBytes: MaxDocumentBytes}); d != want {
			t.Errorf("%+v, want %+v", d, want)
		}
		if d := NewTopic("app").Documents; d != (Documents{}) {
			t.Errorf("a log has the settings of documents: %+v", d)
		}
	})
}

// What is neither frozen nor a field may change, whatever options there come to be.
func TestEvolveOptions(t *testing.T) {
	live := NewTopicOf(kinds.Document, "notes")
	want := live
	want.LaneBy = slices.Clone(live.LaneBy)
	want.Rotate.Rows, want.SQLFresh, want.Documents.HotFor, want.Documents.MaxDocuments = 7, time.Minute, -1, 9
	if got, err := live.Evolve(want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for name, change := range map[string]func(*Topic){
		"lanes is 4 and cannot become 8":                               func(t *Topic) { t.Lanes = 8 },
		"lane_by is [doc_id] and cannot become [path]":                 func(t *Topic) { t.LaneBy = []string{"path"} },
		`documents.ids is "any" and cannot become "generated"; declar`: func(t *Topic) { t.Documents.IDs = IDsGenerated },
	} {
		t.Run(name, func(t *testing.T) {
			want := live
			change(&want)
			if _, err := live.Evolve(want); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want %q", err, name)
			}
		})
	}
}
