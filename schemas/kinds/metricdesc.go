package kinds

// MetricDescriptor says what the points of one metric are.
type MetricDescriptor struct {
	Name string `json:"name" yaml:"name"`
	// Unit and Points are what a point gets that does not say, and what one that does must
	// have. Empty: anything.
	Unit   string `json:"unit,omitempty" yaml:"unit,omitempty"`
	Points string `json:"points,omitempty" yaml:"points,omitempty"`
	// Type of the values: one of ValueTypes. Empty: anything.
	Type string `json:"type,omitempty" yaml:"type,omitempty"`
	// Labels are the names that labels may have. Empty: any.
	Labels []string `json:"labels,omitempty" yaml:"labels,omitempty"`
	// Required are labels that a point must have, with a value.
	Required []string `json:"required,omitempty" yaml:"required,omitempty"`
	// Defaults are the values of labels that a point lacks.
	Defaults map[string]string `json:"defaults,omitempty" yaml:"defaults,omitempty"`
}

// The types of values. A bool is 0 or 1.
const (
	ValueBool         = "bool"
	ValueInt64        = "int64"
	ValueDouble       = "double"
	ValueDistribution = "distribution"
)

// ValueTypes lists the types, for messages and help.
var ValueTypes = []string{ValueBool, ValueInt64, ValueDouble, ValueDistribution}
