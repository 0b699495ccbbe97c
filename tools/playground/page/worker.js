// Runs Python and the package beside the page, so that the page stays responsive.
import { loadPyodide } from "./pyodide.mjs";

// Nothing is awaited before `onmessage` is set: a message that comes earlier would be lost.
async function start() {
  const files = await (await fetch("files.json")).json();
  const python = await loadPyodide({ indexURL: new URL(".", import.meta.url).href });
  const [wheel, sources] = await Promise.all([files.wheel, files.sources].map(fetchBytes));
  python.unpackArchive(wheel, "wheel");
  python.FS.writeFile("/priocast.zip", sources);
  python.runPython("import sys; sys.path.insert(0, '/priocast.zip')");
  const bridge = python.runPython("from priocast.simulation.playground.bridge import Bridge; Bridge()");
  return { bridge, version: files.version };
}

async function fetchBytes(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

const starting = start();
starting.then(
  ({ version }) => postMessage({ version }),
  (error) => postMessage({ failed: String(error) }),
);

onmessage = async ({ data: { number, method, argument } }) => {
  try {
    const { bridge } = await starting;
    const text = argument === undefined ? bridge[method]() : bridge[method](argument);
    postMessage({ number, answer: JSON.parse(text) });
  } catch (error) {
    postMessage({ number, failed: String(error) });
  }
};
