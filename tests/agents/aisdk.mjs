// An agent made of the AI SDK: it streams, runs the tools read and write in the current directory, and goes on until
// the model stops calling. What happened is told as one JSON object on stdout.
//
//     PROVIDER=chat BASE_URL=http://127.0.0.1:1234/v1 MODEL=m node aisdk.mjs "What's in the package.json file?"

import { readFile, writeFile } from 'node:fs/promises'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { isStepCount, streamText, tool } from 'ai'
import { z } from 'zod'

const MOST_STEPS = 6

const place = { name: 'toolglot', baseURL: process.env.BASE_URL, apiKey: 'none' }
const providers = {
  chat: () => createOpenAICompatible({ ...place, includeUsage: true }),
  messages: () => createAnthropic(place),
  responses: () => createOpenAI(place).responses,
}
const provider = providers[process.env.PROVIDER]()

const tools = {
  read: tool({
    description: 'Read a file from the filesystem',
    inputSchema: z.object({
      filePath: z.string().describe('Path of the file'),
      offset: z.number().optional().describe('Line number to start reading from'),
      limit: z.number().optional().describe('Number of lines to read'),
    }),
    execute: ({ filePath }) => readFile(filePath, 'utf8'),
  }),
  write: tool({
    description: "Write content to a file, creating it if it doesn't exist",
    inputSchema: z.object({
      filePath: z.string().describe('Path of the file'),
      content: z.string().describe('Content to write to the file'),
    }),
    execute: async ({ filePath, content }) => {
      await writeFile(filePath, content)
      return `Wrote ${filePath}`
    },
  }),
}

const told = { steps: [], text: '', pieces: {}, errors: [] }

const result = streamText({
  model: provider(process.env.MODEL),
  system: 'You are a careful assistant.',
  prompt: process.argv[2],
  tools,
  stopWhen: isStepCount(MOST_STEPS),
  maxRetries: 0,
  // by default the provider refers to earlier items by their ids; without state every request holds all of them
  providerOptions: process.env.STATELESS ? { openai: { store: false } } : {},
  onError: () => {}, // errors are told below, as parts of the stream
})

for await (const part of result.fullStream) {
  told.pieces[part.type] = (told.pieces[part.type] ?? 0) + 1
  if (part.type === 'error' || part.type === 'tool-error') told.errors.push(String(part.error))
}

try {
  for (const step of await result.steps) {
    told.steps.push({
      text: step.text,
      calls: step.toolCalls.map(({ toolName, input }) => ({ name: toolName, input })),
      results: step.toolResults.map(({ output }) => output),
      finishReason: step.finishReason,
      usage: step.usage.totalTokens ?? null,
    })
  }
  told.text = await result.text
} catch (error) {
  told.errors.push(String(error)) // no step came to its end
}
console.log(JSON.stringify(told))
