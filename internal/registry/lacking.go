package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A process whose user of NATS lacks a right says so in the registry, so that the operator's doctor names it. It does not open the
// registry to say it: the right that it lacks may be one that this takes.

const (
	// lackingPrefix begins the names of these entries, among those that every part may write.
	lackingPrefix = "lacking-"
	// LackingLasts is when NATS lets go of an entry that was not renewed.
	LackingLasts = 15 * time.Second
	// maxLacks is how many rights an entry names.
	maxLacks = 10
)

// Lacking is a process whose user lacks rights.
type Lacking struct {
	// Part is the user of Almanac's table whose rights it needs, and User the one that it connects as.
	Part string `json:"part"`
	User string `json:"user"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Lacks are the rights, each as a line of the server's configuration.
	Lacks []string `json:"lacks"`
}

func (l Lacking) String() string { return l.Part + ", " + process(l.PID, l.Host) }

// TellLacking stores what this process lacks under an id of its own, until LackingLasts passed. Without rights in the list it
// takes back what was told.
func TellLacking(ctx context.Context, nc *nats.Conn, id, part, user string, lacks []string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	lasts := LackingLasts
	if len(lacks) == 0 {
		lasts = streams.Expiring
	}
	if more := len(lacks) - maxLacks; more > 0 {
		lacks = append(slices.Clone(lacks[:maxLacks]), fmt.Sprintf("%d more", more))
	}
	host, _ := os.Hostname() // for people: empty is possible
	data, err := json.Marshal(Lacking{part, user, host, os.Getpid(), lacks})
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, lackingPrefix+id)), data, jetstream.WithMsgTTL(lasts))
	return err
}

// ListLacking lists the processes that say that their users lack rights.
func ListLacking(ctx context.Context, js jetstream.JetStream) (all []Lacking, err error) {
	prefix := schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, lackingPrefix))
	err = streams.Latest(ctx, js, schemas.KVStream, schemas.KVSubject(schemas.LeaseKeys(schemas.RoleProbe)), func(m *streams.Message) error {
		var l Lacking
		if strings.HasPrefix(m.Subject, prefix) && json.Unmarshal(m.Data, &l) == nil && len(l.Lacks) > 0 {
			all = append(all, l)
		}
		return nil
	})
	return all, err
}
