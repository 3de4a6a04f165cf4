package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The settings file reads back every option that `topics show` writes, and each has a flag.
func TestTopicOptions(t *testing.T) {
	cmd := &cobra.Command{}
	topicFlags(cmd)
	flags := cmd.Flags()
	for i := range schemas.Options {
		if o := &schemas.Options[i]; flags.Lookup(o.Flag) == nil {
			t.Errorf("option %s has no flag --%s", o.Key, o.Flag)
		}
	}
	log := schemas.NewTopic("auth", schemas.Field{Name: "event_name", Type: schemas.TypeString, From: "eventName"})
	log.LaneBy, log.OnceBy, log.KeepDays, log.SQLFresh = []string{"service"}, []string{"service", "event_name"}, 90, time.Second
	log.Rotate = schemas.Rotation{Rows: 5_000_000, Bytes: 1 << 30, Span: 24 * time.Hour}
	log.Anonymise = schemas.Anonymise{AfterDays: 30, Fields: []string{"user_id", "attributes.ip"}}
	log.PII = []schemas.Private{{Field: "lat", Rule: schemas.PrivacyCoarseLocation, Grid: 0.5}}
	documents := schemas.NewTopicOf(kinds.Document, "notes")
	documents.Documents = schemas.Documents{IDs: schemas.IDsGenerated, IDLength: 12, HotFor: -time.Second, MaxDocuments: 1_000, MaxBytes: 4_096, UserField: "owner"}
	for _, want := range []schemas.Topic{log, documents} {
		t.Run(want.Name, func(t *testing.T) {
			text, err := yaml.Marshal(map[string][]schemas.Topic{topicsKey: {want}})
			if err != nil {
				t.Fatal(err)
			}
			root, err := parseYAML("almanac.yaml", text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readTopics("almanac.yaml", root.Content[1])
			if err != nil {
				t.Fatalf("%v of\n%s", err, text)
			}
			if back, err := got[0].Declared(); err != nil || !reflect.DeepEqual(back, want) {
				t.Errorf("%+v, %v; want %+v, of\n%s", back, err, want, text)
			}
		})
	}
}
