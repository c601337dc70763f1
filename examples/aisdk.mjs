// The AI SDK: a call in a whole answer, a call in a stream, and a complete cycle with a real file.
//
//     cd examples && npm install
//     toolglot sim --script examples/scenarios.toml
//     toolglot serve --base-url http://127.0.0.1:8099/v1
//     node examples/aisdk.mjs                               (Node 22 or later)

import { exec } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, streamText, tool } from 'ai'
import { z } from 'zod'

const address = process.env.TOOLGLOT_URL ?? 'http://127.0.0.1:8484'
const model = createOpenAICompatible({ name: 'toolglot', baseURL: `${address}/v1`, apiKey: 'none' })('qwen3-max')

const run = promisify(exec)
const tools = {
  read: tool({
    description: 'Read a file from the filesystem',
    inputSchema: z.object({ filePath: z.string() }),
    execute: ({ filePath }) => readFile(filePath, 'utf8'),
  }),
  bash: tool({
    description: 'Execute a command',
    inputSchema: z.object({ command: z.string(), description: z.string() }),
    execute: async ({ command }) => (await run(command)).stdout,
  }),
}

const whole = await generateText({ model, tools, prompt: 'Read the file src/server.js' })
for (const call of whole.toolCalls) console.log('whole:   ', call.toolName, JSON.stringify(call.input))

const stream = streamText({ model, tools, prompt: 'List files in current directory', stopWhen: isStepCount(4) })
for await (const part of stream.fullStream) {
  if (part.type === 'tool-call') console.log('streamed:', part.toolName, JSON.stringify(part.input))
}
console.log('end:     ', await stream.text)

for (const prompt of ['Read package.json', 'Run npm test to check if tests pass']) {
  const { text } = await generateText({ model, tools, prompt, stopWhen: isStepCount(4) })
  console.log('cycle:   ', text)
}
