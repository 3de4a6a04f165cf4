package schemas

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// The settings of tables of kind log did not change with the kinds, so that no table is
// altered when a process of this version starts.
func TestLogTableComment(t *testing.T) {
	topic := NewTopic("things")
	said, ok := ParseTableComment(topic.TableComment())
	if said.Kind != KindLog || said.OnceBy != nil || !ok || strings.Contains(topic.TableComment(), "kind") || strings.Contains(topic.TableComment(), "once") {
		t.Errorf("%q: %+v, %v", topic.TableComment(), said, ok)
	}
	topic = NewTopicOf(kinds.Meter, "usage")
	topic.OnceBy = []string{"a", "b"} // no meter has it; the comment could
	topic.OnceWithin, topic.Lanes = 30*24*time.Hour, 16
	if said, ok := ParseTableComment(topic.TableComment()); said.Kind != kinds.Meter || strings.Join(said.OnceBy, " ") != "a b" || said.OnceWithin != topic.OnceWithin || !ok ||
		said.Lanes != 16 || said.Topic("usage").Lanes != 16 || strings.Join(said.LaneBy, " ") != kinds.ColCause || !slices.Equal(said.Topic("usage").LaneBy, topic.LaneBy) {
		t.Errorf("%q: %+v, %v", topic.TableComment(), said, ok)
	}
	for comment, want := range map[string]bool{"": false, "a dashboard's": false, TableMark: true, TableMark + ", kind of nothing, settings 12": false} {
		if _, ok := ParseTableComment(comment); ok != want {
			t.Errorf("ParseTableComment(%q) is %v, not %v", comment, ok, want)
		}
	}
}

func TestTopicsOfKinds(t *testing.T) {
	meter := NewTopicOf(kinds.Meter, "usage")
	if err := meter.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		topic Topic
		want  string // in the error; "": none
	}{
		"meter":                  {Topic{Name: "usage", Kind: kinds.Meter}, ""},
		"meter with a field":     {Topic{Name: "usage", Kind: kinds.Meter, Fields: []Field{{Name: "region", Type: TypeString}}}, ""},
		"meter with its field":   {Topic{Name: "usage", Kind: kinds.Meter, Fields: []Field{{Name: "region", Type: TypeString}, {Name: "delta", Type: TypeInt64}}}, ""},
		"field of another type":  {Topic{Name: "usage", Kind: kinds.Meter, Fields: []Field{{Name: "delta", Type: TypeFloat64}}}, `field "delta" is float64, in kind meter it is int64`},
		"no such kind":           {Topic{Name: "usage", Kind: "metre"}, `"metre" is not a kind; the kinds are log, meter, metric, audit, document, timer`},
		"once_by of a meter":     {Topic{Name: "usage", Kind: kinds.Meter, OnceBy: []string{"cause"}}, "in kind meter events are the same by type, provider, space, cause"},
		"once_by":                {Topic{Name: "app", OnceBy: []string{"service", "trace_id"}}, ""},
		"once_by of no column":   {Topic{Name: "app", OnceBy: []string{"request"}}, `once_by names "request", which is not a column`},
		"once_by twice":          {Topic{Name: "app", OnceBy: []string{"service", "service"}}, `once_by names "service" twice`},
		"field named identity":   {Topic{Name: "app", OnceBy: []string{"id"}, Fields: []Field{{Name: "identity", Type: TypeString}}}, `field name "identity" is a column of every table`},
		"identity without once":  {Topic{Name: "app", Fields: []Field{{Name: "identity", Type: TypeString}}}, ""},
		"kept documents":         {Topic{Name: "notes", Kind: kinds.Document, KeepDays: 30}, ""},
		"anonymised documents":   {Topic{Name: "notes", Kind: kinds.Document, Anonymise: Anonymise{AfterDays: 7, Fields: []string{"by", "user_id"}}}, ""},
		"of a field of the body": {Topic{Name: "notes", Kind: kinds.Document, Documents: Documents{UserField: "owner"}, Anonymise: Anonymise{AfterDays: 7, Fields: []string{"user_id"}}}, `anonymise field "user_id": the body has it too`},
		"of it and the body":     {Topic{Name: "notes", Kind: kinds.Document, Documents: Documents{UserField: "owner"}, Anonymise: Anonymise{AfterDays: 7, Fields: []string{"user_id", "body"}}}, ""},
		"of a promoted field":    {Topic{Name: "notes", Kind: kinds.Document, Fields: []Field{{Name: "status", Type: TypeString}}, Anonymise: Anonymise{AfterDays: 7, Fields: []string{"status"}}}, `anonymise field "status": the body has it too`},
		"of a version":           {Topic{Name: "notes", Kind: kinds.Document, Anonymise: Anonymise{AfterDays: 7, Fields: []string{"op", "body"}}}, `anonymise field "op" cannot be cleared: of documents by, body, user_id and`},
		"while they are hot":     {Topic{Name: "notes", Kind: kinds.Document, Documents: Documents{HotFor: 24 * time.Hour}, Anonymise: Anonymise{AfterDays: 1, Fields: []string{"body"}}}, "it must be shorter"},
		"named like a once view": {Topic{Name: "app_once"}, "reserved for a view"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.topic.Declared()
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("%v, not %q", err, c.want)
			case c.want != "":
				return
			}
			for i, f := range got.Spec().Fields {
				if got.Fields[i].Name != f.Name || got.Fields[i].Since != 1 {
					t.Errorf("field %d is %v, the kind's is %v", i, got.Fields[i], f)
				}
			}
			if again, err := got.Declared(); err != nil || !slices.Equal(again.FrameColumns(1), got.FrameColumns(1)) || len(again.Fields) != len(got.Fields) {
				t.Errorf("declared again: %v, %v", again.Fields, err)
			}
		})
	}
	if _, err := meter.Evolve(NewTopic("usage")); !errors.Is(err, ErrTopicChange) {
		t.Errorf("a meter became a log: %v", err)
	}
	other := NewTopic("app")
	other.OnceBy = []string{ColID}
	if _, err := NewTopicPtr("app").Evolve(other); !errors.Is(err, ErrTopicChange) {
		t.Errorf("once_by was changed: %v", err)
	}
}

// NewTopicPtr is NewTopic for calls of methods.
func NewTopicPtr(name string) *Topic {
	t := NewTopic(name)
	return &t
}

// A field of the kind that is declared again keeps the name that events bring it by.
func TestKindFieldsFrom(t *testing.T) {
	topic := NewTopicOf(kinds.Audit, "trail")
	topic.Fields = append(topic.Fields, Field{Name: "request_id", Type: TypeString, From: "eventID"})
	got, err := topic.Declared()
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Fields[got.field("request_id")]; f.From != "eventID" || len(got.Fields) != len(topic.Fields)-1 {
		t.Errorf("%+v of %d fields", f, len(got.Fields))
	}
}

// A topic whose events come from a front takes none from elsewhere.
func TestFrontsRefuseEvents(t *testing.T) {
	for _, s := range kinds.Specs() {
		topic := NewTopicOf(s.Kind, "things")
		if err := topic.CheckEvents(); errors.Is(err, ErrWrongKind) != (s.Front != "") {
			t.Errorf("kind %s with the front %q: %v", s.Kind, s.Front, err)
		} else if err != nil && Reason(err) != "wrong-kind" {
			t.Errorf("the reason of %v is %q", err, Reason(err))
		}
	}
}

// What tells events apart or sorts the table is not anonymised, whatever the kind: a cleared
// column would make others of rows, or repeats of what is none. A rule for it can only hash.
func TestIdentityIsNeverCleared(t *testing.T) {
	t.Parallel()
	topics := map[string]Topic{}
	for _, s := range kinds.Specs() {
		topics[string(s.Kind)] = NewTopicOf(s.Kind, "things")
	}
	once := NewTopic("things")
	once.OnceBy, once.LaneBy = []string{ColService, "request"}, []string{"request"}
	once.Fields = []Field{{Name: "request", Type: TypeString, From: "requestId", Since: 1}}
	topics["log with once_by"] = once
	for name, topic := range topics {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := append(topic.Once(), topic.Spec().Sort...)
			if len(topic.Once()) > 0 && len(kept) == len(topic.Once()) {
				t.Fatalf("sorted by nothing: %v", kept)
			}
			for _, column := range kept {
				cleared := topic
				if cleared.Anonymise = (Anonymise{AfterDays: 7, Fields: []string{column}}); cleared.Validate() == nil {
					t.Errorf("%s may be anonymised", column)
				}
			}
			for _, column := range topic.Once() {
				dropped := topic
				if dropped.PII = []Private{{Field: column, Rule: PrivacyDrop}}; dropped.Validate() == nil {
					t.Errorf("%s may be dropped as it comes in", column)
				}
			}
		})
	}
	for what, fields := range map[string][]string{"by its other name": {"requestId"}, "with the attribute": {"ip", "request"}} {
		t.Run(what, func(t *testing.T) {
			if once.Anonymise = (Anonymise{AfterDays: 7, Fields: fields}); once.Validate() == nil {
				t.Errorf("an identity may be anonymised %s", what)
			}
		})
	}
	meter := topics[string(kinds.Meter)]
	if meter.Anonymise = (Anonymise{AfterDays: 7, Fields: []string{ColUserID}}); meter.Validate() != nil {
		t.Errorf("the customer of a meter: %v", meter.Validate())
	}
	if meter.PII = []Private{{Field: kinds.ColCause, Rule: PrivacyHash}}; meter.Validate() != nil {
		t.Errorf("a hashed cause: %v", meter.Validate())
	}
}
