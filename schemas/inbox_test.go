package schemas

import (
	"testing"

	"github.com/nats-io/nats.go"
)

func TestOwnInbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		servers []string
		opts    []nats.Option
		want    string
	}{
		"of the URL":                         {[]string{"nats://router:secret@127.0.0.1:4222", "nats://127.0.0.1:4223"}, nil, "_INBOX.router"},
		"of the options":                     {[]string{"nats://router:secret@127.0.0.1"}, []nats.Option{nats.UserInfo("sink", "s")}, "_INBOX.sink"},
		"without credentials":                {[]string{"nats://127.0.0.1:4222"}, nil, ""},
		"a token names no user":              {[]string{"nats://token@127.0.0.1"}, nil, ""},
		"a name that cannot be in a subject": {[]string{"nats://a.b:secret@127.0.0.1"}, nil, "_INBOX"},
		"what the application says":          {[]string{"nats://router:secret@127.0.0.1"}, []nats.Option{nats.CustomInboxPrefix("_MINE")}, "_MINE"},
		"no server":                          {nil, nil, ""},
		"a server that is not a URL":         {[]string{"::"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := nats.Options{Servers: c.servers}
			for _, opt := range append(c.opts, OwnInbox) {
				if err := opt(&o); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if o.InboxPrefix != c.want {
				t.Errorf("%s: %q, want %q", name, o.InboxPrefix, c.want)
			}
		})
	}
}
