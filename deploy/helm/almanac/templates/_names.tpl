{{- define "almanac.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "almanac.selector" -}}
app.kubernetes.io/name: almanac
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "almanac.labels" -}}
{{ include "almanac.selector" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* The Secrets. A value that is missing ends the rendering with a sentence. */}}
{{- define "almanac.secret" -}}
{{- if .Values.secrets.existing }}{{ .Values.secrets.existing }}
{{- else if .Values.secrets.given }}{{ include "almanac.name" . }}-servers
{{- else }}{{ fail "secrets: give the name of a Secret as secrets.existing, or its keys as secrets.given; values.yaml lists them" }}
{{- end }}
{{- end }}

{{- define "almanac.tls" -}}
{{- if .Values.tls.existing }}{{ .Values.tls.existing }}
{{- else if and .Values.tls.cert .Values.tls.key }}{{ include "almanac.name" . }}-tls
{{- else }}{{ fail "tls: give the name of a Secret of type kubernetes.io/tls as tls.existing, or tls.cert and tls.key: no part listens beyond its pod without" }}
{{- end }}
{{- end }}

{{- define "almanac.given" -}}
{{- get .root.Values.secrets.given .key | required (printf "secrets.given: %s is missing; values.yaml says what it is" .key) | b64enc | quote }}
{{- end }}
