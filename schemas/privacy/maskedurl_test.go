package privacy

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestMaskedURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nats://127.0.0.1:4222":                           "nats://127.0.0.1:4222",
		"127.0.0.1:4222":                                  "127.0.0.1:4222",
		"nats://u:hush@one,nats://hush@two":               "nats://u:xxxxx@one,nats://xxxxx@two",
		"u:hush@one:4222":                                 "xxxxx@one:4222",
		"http://almanac:hush@db:8123/almanac":             "http://almanac:xxxxx@db:8123/almanac",
		"clickhouse://db:9000/a?username=u&password=hush": "clickhouse://db:9000/a?password=xxxxx&username=u",
		"nats://u:hu sh@\x7f":                             "(not readable)",
	} {
		if got := MaskedURL(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	bad := strings.Join([]string{"nats://u:hush", "@one"}, "\x7f")
	_, err := url.Parse(bad)
	if err == nil || strings.Contains(MaskedError(err).Error(), "hush") {
		t.Errorf("%v", MaskedError(err))
	}
	if plain := errors.New("plain"); !errors.Is(MaskedError(plain), plain) {
		t.Error("another error is not itself")
	}
}
