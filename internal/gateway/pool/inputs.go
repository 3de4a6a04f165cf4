package pool

// Input is a protocol that events come by.
type Input string

// The inputs.
const (
	InputLines       Input = "lines"
	InputOTLPHTTP    Input = "otlp_http"
	InputOTLPGRPC    Input = "otlp_grpc"
	InputLoki        Input = "loki"
	InputElastic     Input = "elastic"
	InputRemoteWrite Input = "remote_write"
	InputSyslog      Input = "syslog"
	InputAudit       Input = "audit" // what the gateway records of reads
)

// Inputs are all there are.
var Inputs = []Input{InputLines, InputOTLPHTTP, InputOTLPGRPC, InputLoki, InputElastic, InputRemoteWrite, InputSyslog, InputAudit}
