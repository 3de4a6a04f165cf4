package alerts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/schemas"
)

// MaxFileBytes bounds a file of rules.
const MaxFileBytes = 4 << 20

// Parse reads a file of rules: groups, in YAML or JSON. receivers beside groups are of every group.
func Parse(data []byte) ([]Group, error) { return ParseFor(data, "") }

// ParseFor is Parse, with a topic for the groups that name none: files of Prometheus's do not.
func ParseFor(data []byte, topic string) ([]Group, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%w: %w: the file has %d bytes; the limit is %d", schemas.ErrRequest, ErrRule, len(data), MaxFileBytes)
	}
	var file struct {
		Groups    []Group    `yaml:"groups"`
		Receivers []Receiver `yaml:"receivers"`
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w: %w", schemas.ErrRequest, ErrRule, err)
	}
	if len(file.Groups) == 0 {
		return nil, fmt.Errorf("%w: %w: the file has no groups", schemas.ErrRequest, ErrRule)
	}
	seen := map[string]bool{}
	for i := range file.Groups {
		g := &file.Groups[i]
		g.Receivers = append(g.Receivers, file.Receivers...)
		g.Topic = cmp.Or(g.Topic, topic)
		if err := g.Validate(); err != nil {
			return nil, err
		}
		if seen[g.Name] {
			return nil, g.refuse(nil, "the file has two groups of that name")
		}
		seen[g.Name] = true
	}
	return file.Groups, nil
}
