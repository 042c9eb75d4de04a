/** Words that the documentation does not use, and what it says in their place. */
import { CALL } from './texts.mjs';

/** @type {readonly (readonly [pattern: RegExp, instead: string])[]} */
export const VOCABULARY = [
  [/\b(?:is|are) there\b(?! (?:a|an|any)\b)/i, '"reachable", "available" or "exists"'],
  [new RegExp(`\\b${CALL} answers\\b`), '"returns": HTTP answers, functions return'],
  [/\b(?:function|method|call)s? answers?\b/i, '"returns": HTTP answers, functions return'],
  [/\bfor ?ever\b/i, '"indefinitely"'],
  [/\bwithout end\b/i, '"indefinitely"'],
  [/\bmend(?:s|ed|ing)?\b/i, '"fix", "repair"'],
  [/\b(?:is|are|was|were|be|been) told\b/i, '"is notified"'],
  [/\bin vain\b/i, '"times out"'],
  [/\bsa(?:y|ys|id) so\b/i, '"reports"'],
  [/\b(?:goes|went|going|go) on\b/i, '"continues"'],
  [/\blook(?:s|ed)? again\b/i, '"tries again"'],
  [/\b(?:learns?|hears?|heard) of\b/i, '"detects", "is notified of"'],
  [/\b(?:let|lets) in\b/i, '"admit"'],
  [/\bgoes? through\b/i, 'what happens: "reuses the lock", "succeeds"'],
  [/\b(?:give|gives|gave|given|giving)(?: \w+)? back\b/i, '"release", "return"'],
  [
    /\b(?:some|no|every|any)body\b(?! else is working)/i,
    'the actor: "another caller", "no process"',
  ],
  [/\bwho(?:so)?ever\b/i, 'the actor: "the process that"'],
  [/\bat the most\b/i, '"at most"'],
  [/\bfor good\b/i, '"permanently"'],
  [/\ball the same\b/i, '"anyway"'],
  [/\bin (?:the|its|their) place of\b/i, '"instead of"'],
  [/\bso many\b/i, '"that many", or the number'],
  [/\b(?:formerly|hitherto|erstwhile)\b/i, '"previously"'],
];
