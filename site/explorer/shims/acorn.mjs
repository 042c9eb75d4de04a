/** In place of acorn, which reads the names of parameters from source: keys of the explorer have none. */
export default {};
