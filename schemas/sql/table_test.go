package sql

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

var (
	sortClause = regexp.MustCompile(`(?m)^ORDER BY \((.*)\)`)
	// sortedBy finds the columns of a sort clause, and the functions that it has them in.
	sortedBy = regexp.MustCompile(`(\w+)(\(?)`)
)

// A kind names the columns by which its table is sorted.
func TestTablesAreSortedAsKindsSay(t *testing.T) {
	for _, spec := range kinds.Specs() {
		t.Run(string(spec.Kind), func(t *testing.T) {
			topic := schemas.NewTopicOf(spec.Kind, "things")
			m := sortClause.FindStringSubmatch(CreateTable(&topic, ""))
			if m == nil {
				t.Fatal("no ORDER BY")
			}
			var sorted []string
			for _, word := range sortedBy.FindAllStringSubmatch(m[1], -1) {
				if word[2] == "" {
					sorted = append(sorted, word[1])
				}
			}
			if !slices.Equal(sorted, spec.Sort) {
				t.Errorf("sorted by %v, the kind says %v", sorted, spec.Sort)
			}
		})
	}
}

// A column that is to be emptied is, also where a field inside its text is named before it.
func TestClearWhole(t *testing.T) {
	topic := schemas.NewTopic("app")
	for name, fields := range map[string][]string{"inside first": {"message.email", "message"}, "whole first": {"message", "message.email"}} {
		t.Run(name, func(t *testing.T) {
			set, where := Clear(&topic, fields)
			if !strings.Contains(set, "`message` = '',") || !strings.Contains(where, "`message` != ''") {
				t.Errorf("%s where %s", set, where)
			}
		})
	}
}

// The shards of a lane are a range of ids.
func TestInLane(t *testing.T) {
	if got := InLane(0) + "; " + InLane(255); got != "shard BETWEEN 0 AND 72057594037927935; shard BETWEEN 18374686479671623680 AND 18446744073709551615" {
		t.Error(got)
	}
}
