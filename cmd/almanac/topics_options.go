package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// topicFlags adds a flag for each option of a topic. Numbers and lists show the default of
// a log; the help of the others names it.
func topicFlags(cmd *cobra.Command) {
	usual := schemas.NewTopic("")
	for i := range schemas.Options {
		o := &schemas.Options[i]
		p := textFlag(o.Flag, o.Usage)
		switch def := o.Of(&usual).(type) {
		case *int:
			p = orElse(numberFlag(o.Flag, o.Usage), *def)
		case *uint64:
			if !o.Size {
				p = orElse(amountFlag(o.Flag, o.Usage), *def)
			}
		case *[]string:
			p = orElse(namesFlag(o.Flag, o.Usage), strings.Join(*def, ","))
		case *[]schemas.Field, *[]schemas.Private, *[]schemas.MetricDescriptor:
			p = textsFlag(o.Flag, o.Usage)
		}
		addFlags(cmd, p)
	}
}

// topicByFlags is the live topic, or a new one, with what the flags say.
func topicByFlags(ctx context.Context, reg *registry.Registry, cmd *cobra.Command, name string) ([]schemas.Topic, error) {
	f, r := cmd.Flags(), reading{flags: cmd}
	t, err := reg.Topic(ctx, name)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		t, err = schemas.NewTopicOf(schemas.Kind(r.flag("kind")), name), nil
		t.LaneBy = nil // what --once-by says decides
	}
	if err != nil {
		return nil, err
	}
	for i := range schemas.Options {
		o := &schemas.Options[i]
		if !f.Changed(o.Flag) {
			continue
		}
		switch into := o.Of(&t).(type) {
		case *[]string:
			*into, _ = f.GetStringSlice(o.Flag)
		case *[]schemas.Field:
			texts, _ := f.GetStringArray(o.Flag)
			for _, text := range texts {
				r.fail(o.Flag, addField(into, text))
			}
		case *[]schemas.Private:
			texts, _ := f.GetStringArray(o.Flag)
			for _, text := range texts {
				r.fail(o.Flag, setPrivacy(into, text))
			}
		case *[]schemas.MetricDescriptor:
			texts, _ := f.GetStringArray(o.Flag)
			for _, text := range texts {
				r.fail(o.Flag, setMetric(into, text))
			}
		default:
			r.fail(o.Flag, setOption(o, &t, r.flag(o.Flag)))
		}
	}
	return []schemas.Topic{t}, r.err
}

// addField adds the promoted field NAME:TYPE or NAME:TYPE:FROM.
func addField(fields *[]schemas.Field, text string) error {
	part := append(strings.SplitN(text, ":", 3), "")
	if len(part) < 3 {
		return fmt.Errorf("%q is not NAME:TYPE or NAME:TYPE:FROM", text)
	}
	*fields = append(*fields, schemas.Field{Name: part[0], Type: schemas.FieldType(part[1]), From: part[2]})
	return nil
}

// setPrivacy sets the rule of a field, FIELD:RULE, or takes it back, FIELD:.
func setPrivacy(rules *[]schemas.Private, text string) error {
	field, rule, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("%q is not FIELD:RULE", text)
	}
	*rules = slices.DeleteFunc(slices.Clone(*rules), func(p schemas.Private) bool { return p.Field == field })
	if rule != "" {
		*rules = append(*rules, schemas.Private{Field: field, Rule: schemas.PrivacyRule(rule)})
	}
	return nil
}

// setMetric describes a metric, in place of what described it before.
func setMetric(metrics *[]schemas.MetricDescriptor, text string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		return fmt.Errorf("%q is not {name: …, unit: …, labels: […]}", text)
	}
	d, err := readMetric("--metric", doc.Content[0])
	if err != nil {
		return err
	}
	*metrics = slices.DeleteFunc(slices.Clone(*metrics), func(m schemas.MetricDescriptor) bool { return m.Name == d.Name })
	*metrics = append(*metrics, d)
	return nil
}

// setOption reads the text of an option that is one value.
func setOption(o *schemas.Option, t *schemas.Topic, text string) error {
	var ok bool
	switch into := o.Of(t).(type) {
	case *string:
		*into = text
	case *bool:
		var err error
		if *into, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
	case *schemas.Kind:
		*into = schemas.Kind(text)
	case *int:
		n, err := strconv.ParseInt(text, 0, 0)
		if err != nil {
			return fmt.Errorf("%q is not a whole number, such as 10", text)
		}
		*into = int(n)
	case *uint64:
		if o.Size {
			var n int64
			n, ok = parseSize(text)
			*into = uint64(max(n, 0))
		} else {
			n, err := strconv.ParseUint(text, 0, 64)
			*into, ok = n, err == nil
		}
		if !ok {
			return fmt.Errorf("%q is not %s", text, map[bool]string{true: "a size, such as 2GiB", false: "a whole number of 0 or more, such as 10"}[o.Size])
		}
	case *time.Duration:
		length, negative := strings.CutPrefix(text, "-")
		if *into, ok = parseSpan(length); !ok {
			return fmt.Errorf("%q is not a length of time, such as 10s or 24h", text)
		}
		if negative {
			*into = -*into
		}
	default:
		return fmt.Errorf("the option %s has a type that cannot be read: %T", o.Key, into)
	}
	return nil
}
