package schemas

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// StepPrefix begins the names of tables that hold rows for one step of a part, with what they are for after it. No topic's name begins so, and
// ClickHouse grants rights by the beginning of a name.
const StepPrefix = "_step_"

// ReplacePrefix begins the name that ClickHouse gives a view until it takes the place of another.
const ReplacePrefix = "_tmp_replace_"

// TableMark begins the comment of every table that Almanac made.
const TableMark = "made by almanac"

// What the comment of a topic's table says after TableMark, where it is not the default.
const (
	commentKind = "kind "    // of the topic; without it log
	commentOnce = "once by " // the topic's own once_by, separated by spaces
	// The topic's once_within.
	commentWithin = "once within "
	// Its number of lanes, and the lane key of a topic with an identity.
	commentLanes  = "lanes "
	commentLaneBy = "lane by "
)

// TableComment is the comment of the topic's table: its kind, once_by and lanes, so that a lost
// descriptor can be restored.
func (t *Topic) TableComment() string {
	parts := []string{TableMark}
	if kind := t.Spec().Kind; kind != KindLog {
		parts = append(parts, commentKind+string(kind))
	}
	if len(t.OnceBy) > 0 {
		parts = append(parts, commentOnce+strings.Join(t.OnceBy, " "))
	}
	if t.OnceWithin > 0 {
		parts = append(parts, commentWithin+t.OnceWithin.String())
	}
	if t.Lanes != t.defaultLanes() {
		parts = append(parts, commentLanes+strconv.Itoa(t.Lanes))
	}
	if t.HasOnce() && !slices.Equal(t.LaneBy, t.laneKey()) {
		parts = append(parts, commentLaneBy+strings.Join(t.LaneBy, " "))
	}
	return strings.Join(parts, ", ")
}

// TableTopic is what the comment of a table says of its topic.
type TableTopic struct {
	Kind       Kind
	OnceBy     []string
	OnceWithin time.Duration
	Lanes      int
	LaneBy     []string // nil: the default
}

// Topic is what is known of a topic by the comment of its table.
func (said TableTopic) Topic(name string) Topic {
	t := Topic{Name: name, Kind: said.Kind, OnceBy: said.OnceBy, OnceWithin: said.OnceWithin, Lanes: said.Lanes, LaneBy: said.LaneBy}
	t.setDefaults()
	return t
}

// ParseTableComment reads what TableComment says of a topic. It is false for a comment
// that is not one, or that names a kind this version does not know.
func ParseTableComment(comment string) (said TableTopic, ok bool) {
	parts := strings.Split(comment, ", ")
	if parts[0] != TableMark {
		return said, false
	}
	said.Kind = KindLog
	for _, p := range parts[1:] {
		if word, is := strings.CutPrefix(p, commentKind); is {
			said.Kind = Kind(word)
		}
		if columns, is := strings.CutPrefix(p, commentOnce); is {
			said.OnceBy = strings.Fields(columns)
		}
		if columns, is := strings.CutPrefix(p, commentLaneBy); is {
			said.LaneBy = strings.Fields(columns)
		}
		if number, is := strings.CutPrefix(p, commentLanes); is {
			lanes, err := strconv.Atoi(number)
			if err != nil || lanes < 1 || lanes > MaxLanes {
				return said, false
			}
			said.Lanes = lanes
		}
		if length, is := strings.CutPrefix(p, commentWithin); is {
			within, err := time.ParseDuration(length)
			if err != nil {
				return said, false
			}
			said.OnceWithin = within
		}
	}
	return said, said.Kind.Spec() != nil
}
