package filter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// What a row limit may be: never one that an event meets by what it does not say. The texts of limits are in no error.
func TestParseLimit(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app",
		schemas.Field{Name: "customer", Type: schemas.TypeLowCardinality, From: "tenant"}, schemas.Field{Name: "org", Type: schemas.TypeInt64},
		schemas.Field{Name: "body", Type: schemas.TypeJSON}, schemas.Field{Name: "paid", Type: schemas.TypeBool})
	for src, want := range map[string]string{
		"attributes.zone = 'secret'":                   "attributes.zone = 'secret'",
		"attributes.zone = 5":                          "attributes.zone = 5",
		"attributes.tenant = 'secret'":                 "customer = 'secret'", // promoted: the column has it, of older events too
		"attributes['tenant'] IN ('secret', 'b')":      "customer IN ('secret', 'b')",
		"attributes.org = 7":                           "org = 7",
		"org IN (1, 2) AND service = 'secret'":         "org IN (1, 2) AND service = 'secret'",
		"service = 'secret' OR user_id = 'u'":          "service = 'secret' OR user_id = 'u'",
		"(service = 'secret')":                         "service = 'secret'",
		"":                                             "",
		"service = ''":                                 "",
		"service IN ('secret', '')":                    "",
		"org = 0":                                      "",
		"attributes.org = 'secret'":                    "",
		"paid = false":                                 "",
		"body = 'secret'":                              "",
		"service != 'secret'":                          "",
		"NOT service = 'secret'":                       "",
		"service NOT IN ('secret')":                    "",
		"service = 'b' OR NOT service = 'secret'":      "",
		"exists attributes.secret":                     "",
		"message contains 'secret'":                    "",
		"message matches 'secret'":                     "",
		"service > 'secret'":                           "",
		"ts > -15m":                                    "",
		"secret = 'a'":                                 "",
		"service = 'secret":                            "",
		strings.Repeat("(", MaxNesting+1) + "'secret'": "",
	} {
		e, err := ParseLimit(src, &topic)
		switch {
		case want != "":
			if err != nil || e.String() != want {
				t.Errorf("%s: %q, %v", src, e, err)
			}
		case err == nil || !errors.Is(err, ErrLimit) || strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %q, %v", src, e, err)
		}
	}
	for src, ok := range map[string]bool{"tenant_id = 'a'": true, "service = 'a'": true, "service != 'a'": false, "service": false} {
		if err := CheckLimit(src); (err == nil) != ok {
			t.Errorf("%s without a topic: %v", src, err)
		}
	}
}

// A filter within a limit selects what both do; one that is wrong is told of, and a wrong limit too.
func TestParseWithin(t *testing.T) {
	t.Parallel()
	limited := WithLimit(context.Background(), "service = 'a' OR service = 'b'")
	for name, c := range map[string]struct {
		ctx              context.Context
		src, asked, both string
		err              error
	}{
		"no limit":        {context.Background(), "level = 'info'", "level = 'info'", "level = 'info'", nil},
		"an empty limit":  {WithLimit(context.Background(), ""), "", "", "", nil},
		"no filter":       {limited, "", "", "service = 'a' OR service = 'b'", nil},
		"both":            {limited, "level = 'info' OR service = 'c'", "level = 'info' OR service = 'c'", "(service = 'a' OR service = 'b') AND (level = 'info' OR service = 'c')", nil},
		"a wrong filter":  {limited, "level =", "", "", ErrSyntax},
		"a way out of it": {limited, "level = 'info') OR (1 = 1", "", "", ErrSyntax},
		"a wrong limit":   {WithLimit(context.Background(), "level ="), "level = 'info'", "", "", ErrLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, whole, err := ParseWithin(c.ctx, c.src, nil, time.Now())
			if !errors.Is(err, c.err) || err == nil && (asked.String() != c.asked || whole.String() != c.both) {
				t.Fatalf("%q, %q, %v", asked, whole, err)
			}
			if again, err := Parse(whole.String(), nil); err == nil && again.String() != whole.String() {
				t.Errorf("%q is read as %q", whole, again)
			}
		})
	}
}
