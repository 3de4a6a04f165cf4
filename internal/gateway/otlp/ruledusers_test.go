package otlp

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// ruledRecords are the events of one record as a topic stores them.
func ruledRecords(t *testing.T, topic *schemas.Topic, fill func(resource, record map[string]any), scope ...func(map[string]any)) []schemas.Event {
	t.Helper()
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	r := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	resource, record := map[string]any{}, map[string]any{}
	fill(resource, record)
	if err := rl.Resource().Attributes().FromRaw(resource); err != nil {
		t.Fatal(err)
	}
	if err := r.Attributes().FromRaw(record); err != nil {
		t.Fatal(err)
	}
	for _, f := range scope {
		attrs := map[string]any{}
		f(attrs)
		if err := rl.ScopeLogs().At(0).Scope().Attributes().FromRaw(attrs); err != nil {
			t.Fatal(err)
		}
	}
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	var events []schemas.Event
	err = decode(body, false, topic, func(ev *schemas.Event, err error) {
		if err != nil {
			t.Error(err)
		}
		if p := privacy.New(topic, []byte("0123456789abcdef")); p != nil {
			p.Apply(ev)
		}
		events = append(events, *ev)
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// All names by which OpenTelemetry tells the user stand under the rule
// for user_id, also those beside the one that became user_id.
func TestUsersOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	fill := func(resource, record map[string]any) {
		resource["user.id"], resource["enduser.id"] = "CLEAR-1", "CLEAR-2"
		record["user.id"], record["enduser.id"], record["user_id"] = "CLEAR-3", "CLEAR-4", "CLEAR-5"
		record["other"] = "open"
	}
	text := func(events []schemas.Event) string { return fmt.Sprintf("%+v", events) }
	if got := text(ruledRecords(t, &topic, fill)); strings.Count(got, "CLEAR") != 5 || !strings.Contains(got, "resource.user_id") {
		t.Errorf("without a rule: %s", got)
	}
	topic.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
	events := ruledRecords(t, &topic, func(resource, record map[string]any) {
		fill(resource, record)
		resource["user"] = map[string]any{"id": "CLEAR-6"}
	}, func(scope map[string]any) { scope["user.id"] = "CLEAR-7" })
	if got := text(events); strings.Contains(got, "CLEAR") || !strings.Contains(got, "open") || len(events[0].Attrs) != 7 {
		t.Errorf("stored: %s", got)
	}
	topic.PII = nil
	topic.Anonymise = schemas.Anonymise{AfterDays: 30, Fields: []string{schemas.ColUserID}}
	for _, a := range ruledRecords(t, &topic, fill)[0].Attrs {
		if strings.Contains(a.Text(), "CLEAR") && a.Key != schemas.ColUserID && !strings.HasPrefix(a.Key, schemas.ColUserID+".") {
			t.Errorf("not cleared with user_id: %s=%s", a.Key, a.Text())
		}
	}
}

// Promoted fields and fields with rules are taken before the limit on
// attributes counts, of records of OpenTelemetry too.
func TestPromotedFieldsOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app", schemas.Field{Name: "public", Type: schemas.TypeBool}, schemas.Field{Name: "host", Type: schemas.TypeString, From: "resource.host.name"})
	topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}}
	ev := ruledRecords(t, &topic, func(resource, record map[string]any) {
		for i := range 300 {
			record[fmt.Sprintf("a%03d", i)] = i
		}
		record["public"], record["email"] = true, "CLEAR"
		resource["host.name"] = "h1"
	})[0]
	if len(ev.Attrs) != schemas.MaxAttrs {
		t.Errorf("%d attributes", len(ev.Attrs))
	}
	got := map[string]string{}
	for _, a := range ev.Attrs {
		got[a.Key] = a.Text()
	}
	if got["public"] != "true" || got["resource.host.name"] != "h1" {
		t.Errorf("promoted fields went to %s: %v", schemas.AttrRest, got)
	}
	if email, there := got["email"]; !there || email != "" || strings.Contains(fmt.Sprint(got), "CLEAR") {
		t.Errorf("the field with a rule: %v", got)
	}
}
