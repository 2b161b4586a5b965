export default { serverExternalPackages: ["hopline"] };
