module holdfast/redissonyaml

go 1.25.0

replace holdfast => ../

require (
	github.com/magiconair/properties v1.8.10
	github.com/redis/rueidis v1.0.79
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5
	holdfast v0.0.0-00010101000000-000000000000
)

require (
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
