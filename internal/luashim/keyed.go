package luashim

// Keyed refuses a script that is sent without keys, in the words of ElastiCache Serverless.
func Keyed(source string) string {
	const refusal = "if #KEYS == 0 then " +
		"return redis.error_reply('ERR Lua scripts without any input keys are not supported.') end\n"
	return refusal + source
}
