package declare

import (
	"reflect"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// What goes is added up by step, and is exact only where every shard is closed.
func TestLosses(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	planned := []registry.Planned{
		{Shard: "a", Step: registry.AnonymiseIt, At: day(1), Rows: 5, Bytes: 50, Status: registry.Closed},
		{Shard: "b", Step: registry.DropIt, At: day(2), Rows: 7, Bytes: 70, Status: registry.Closed},
		{Shard: "c", Step: registry.DropIt, At: day(3), Rows: 1, Bytes: 10, Status: registry.Active},
	}
	want := []Loss{
		{Step: registry.DropIt, Shards: 2, Rows: 8, Bytes: 80, From: day(2)},
		{Step: registry.AnonymiseIt, Shards: 1, Rows: 5, Bytes: 50, From: day(1), Exact: true},
	}
	got := losses(planned)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	err := &LossError{Topic: "app", Loss: got}
	if want := "topic app: 2 shards with about 8 events would be dropped and 1 shard with 5 events would be anonymised, now or sooner than they are, and nothing brings that back"; err.Error() != want {
		t.Errorf("%s, want %s", err, want)
	}
	if got := losses(nil); got != nil {
		t.Errorf("of nothing it is %+v", got)
	}
}

// The filter of a rule's field is one that the topic has, whatever the field's name and type.
func TestPresent(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app", schemas.Field{Name: "email", Type: schemas.TypeString}, schemas.Field{Name: "lat", Type: schemas.TypeFloat64}, schemas.Field{Name: "ok", Type: "bool"})
	for field, want := range map[string]string{
		"user_id":          "EXISTS attributes['user_id'] OR EXISTS user_id",
		"msg":              "EXISTS attributes['message'] OR EXISTS attributes['msg'] OR EXISTS message",
		"email":            "EXISTS attributes['email'] OR EXISTS `email`",
		"attributes.email": "EXISTS attributes['email']",
		"lat":              "EXISTS attributes['lat'] OR `lat` != 0",
		"Client.IP":        "EXISTS attributes['client.ip'] OR EXISTS attributes['Client.IP']",
		"it's":             `EXISTS attributes['it\'s']`,
		`a\b`:              `EXISTS attributes['a\\b']`,
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			got := present(&topic, schemas.Private{Field: field, Rule: schemas.PrivacyDrop})
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if _, err := filter.ParseAt(got, &topic, time.Now()); err != nil {
				t.Errorf("%s: %v", got, err)
			}
		})
	}
}

// Only rules that were not there, or were others, are new.
func TestNewRules(t *testing.T) {
	t.Parallel()
	rule := func(field string, r schemas.PrivacyRule, since int) schemas.Private {
		return schemas.Private{Field: field, Rule: r, Since: since}
	}
	was := []schemas.Private{rule("a", schemas.PrivacyDrop, 2), rule("b", schemas.PrivacyDrop, 2)}
	got := newRules(was, []schemas.Private{rule("a", schemas.PrivacyDrop, 2), rule("b", schemas.PrivacyHash, 3), rule("c", schemas.PrivacyDrop, 3)})
	if want := []schemas.Private{rule("b", schemas.PrivacyHash, 3), rule("c", schemas.PrivacyDrop, 3)}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
