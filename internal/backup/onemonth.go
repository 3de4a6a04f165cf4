package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// spans says of a kind why the events of one month are not whole without those of others.
var spans = map[schemas.Kind]string{
	schemas.KindDocument: "the newest version of a document may be of any month",
	schemas.KindTimer:    "a timer is made in one month and may end in another",
	schemas.KindMeter:    "a correction is of another month than what it corrects, and sums outlive their rows",
}

// CheckMonth refuses one month alone of topics of which that cannot be, and of those that have no events of it. Nil: of all topics.
func (o Only) CheckMonth(ctx context.Context, from *Store, backup *Manifest, month schemas.Month) error {
	i := slices.IndexFunc(backup.Streams, func(s Stream) bool { return s.Name == schemas.KVStream })
	topics, months := map[string]schemas.Topic{}, map[string][]string{}
	descriptors := schemas.KVSubject(schemas.TopicKey(""))
	err := from.messages(ctx, &backup.Streams[i], func(m *message) error {
		if name, ok := strings.CutPrefix(m.subject, descriptors); ok {
			delete(topics, name)
			var t schemas.Topic
			if json.Unmarshal(m.data, &t) == nil { // else it was removed, or verify names it
				topics[name] = t
			}
			return nil
		}
		name, rest, _ := strings.Cut(strings.TrimPrefix(m.subject, schemas.KVSubject("")), ".")
		if of, err := schemas.ParseMonth(rest); err == nil && len(m.data) > 0 && !slices.Contains(months[name], of.String()) {
			months[name] = append(months[name], of.String())
		}
		return nil
	})
	if err != nil {
		return from.removed(ctx, backup, err, anotherBackup)
	}
	found, all := false, []string{}
	for name, t := range topics {
		if o != nil && !slices.Contains(o, name) {
			continue
		}
		if why := spans[t.Kind]; why != "" {
			return fmt.Errorf("%w: topic %s is of kind %s: %s. Name the others by --topic", ErrNoMonth, name, t.Kind, why)
		}
		found = found || slices.Contains(months[name], month.String())
		all = append(all, months[name]...)
	}
	if slices.Sort(all); !found {
		return fmt.Errorf("%w: there are no events of %s: the backup has %s", ErrNoMonth, month, strings.Join(slices.Compact(all), ", "))
	}
	return nil
}
