/** What the compiler uses of luaparse, which comes without types: its tree of Lua 5.1. */
declare module 'luaparse' {
  interface Place {
    readonly range: readonly [start: number, end: number];
    readonly loc: {
      readonly start: { readonly line: number };
      readonly end: { readonly line: number };
    };
  }

  export type Node = Expression | Statement;

  export type Expression = Place &
    (
      | { readonly type: 'Identifier'; readonly name: string }
      | { readonly type: 'NumericLiteral'; readonly value: number }
      | { readonly type: 'StringLiteral'; readonly value: string }
      | { readonly type: 'BooleanLiteral'; readonly value: boolean }
      | { readonly type: 'NilLiteral' | 'VarargLiteral' }
      | CallExpression
      | { readonly type: 'StringCallExpression' | 'TableCallExpression' }
      | MemberExpression
      | { readonly type: 'IndexExpression'; readonly base: Expression; readonly index: Expression }
      | {
          readonly type: 'UnaryExpression';
          readonly operator: 'not' | '-' | '#';
          readonly argument: Expression;
        }
      | LogicalExpression
      | {
          readonly type: 'BinaryExpression';
          readonly operator: string;
          readonly left: Expression;
          readonly right: Expression;
        }
      | TableConstructor
      | FunctionDeclaration
    );

  export type CallExpression = Place & {
    readonly type: 'CallExpression';
    readonly base: Expression;
    readonly arguments: readonly Expression[];
  };

  export type MemberExpression = Place & {
    readonly type: 'MemberExpression';
    readonly indexer: '.' | ':';
    readonly identifier: { readonly name: string };
    readonly base: Expression;
  };

  export type LogicalExpression = Place & {
    readonly type: 'LogicalExpression';
    readonly operator: 'and' | 'or';
    readonly left: Expression;
    readonly right: Expression;
  };

  export type TableConstructor = Place & {
    readonly type: 'TableConstructorExpression';
    readonly fields: readonly (
      | { readonly type: 'TableKey'; readonly key: Expression; readonly value: Expression }
      | {
          readonly type: 'TableKeyString';
          readonly key: { readonly name: string };
          readonly value: Expression;
        }
      | { readonly type: 'TableValue'; readonly value: Expression }
    )[];
  };

  export type FunctionDeclaration = Place & {
    readonly type: 'FunctionDeclaration';
    readonly identifier: Expression | null;
    readonly isLocal: boolean;
    readonly parameters: readonly (
      { readonly type: 'Identifier'; readonly name: string } | { readonly type: 'VarargLiteral' }
    )[];
    readonly body: readonly Statement[];
  };

  export interface Name {
    readonly name: string;
  }

  export type ForGenericStatement = Place & {
    readonly type: 'ForGenericStatement';
    readonly variables: readonly Name[];
    readonly iterators: readonly Expression[];
    readonly body: readonly Statement[];
  };

  export type ForNumericStatement = Place & {
    readonly type: 'ForNumericStatement';
    readonly variable: Name;
    readonly start: Expression;
    readonly end: Expression;
    readonly step: Expression | null;
    readonly body: readonly Statement[];
  };

  export type AssignmentStatement = Place & {
    readonly type: 'AssignmentStatement';
    readonly variables: readonly Expression[];
    readonly init: readonly Expression[];
  };

  export type LocalStatement = Place & {
    readonly type: 'LocalStatement';
    readonly variables: readonly Name[];
    readonly init: readonly Expression[];
  };

  export type IfStatement = Place & {
    readonly type: 'IfStatement';
    readonly clauses: readonly (
      | {
          readonly type: 'IfClause' | 'ElseifClause';
          readonly condition: Expression;
          readonly body: readonly Statement[];
        }
      | { readonly type: 'ElseClause'; readonly body: readonly Statement[] }
    )[];
  };

  export type Statement = Place &
    (
      | LocalStatement
      | AssignmentStatement
      | { readonly type: 'CallStatement'; readonly expression: Expression }
      | IfStatement
      | { readonly type: 'ReturnStatement'; readonly arguments: readonly Expression[] }
      | { readonly type: 'BreakStatement' }
      | { readonly type: 'DoStatement'; readonly body: readonly Statement[] }
      | {
          readonly type: 'WhileStatement';
          readonly condition: Expression;
          readonly body: readonly Statement[];
        }
      | { readonly type: 'RepeatStatement' }
      | ForNumericStatement
      | ForGenericStatement
      | FunctionDeclaration
    );

  interface Options {
    readonly luaVersion: '5.1';
    readonly comments: false;
    readonly locations: true;
    readonly ranges: true;
    readonly encodingMode: 'pseudo-latin1';
  }

  const luaparse: {
    parse(text: string, options: Options): { readonly body: readonly Statement[] };
  };
  export default luaparse;
}
