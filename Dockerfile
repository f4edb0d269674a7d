# One image for every Waybill process: the api by default, the dispatcher and the CLI by another command.
FROM node:24.21.0-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY .swcrc nest-cli.json tsconfig.json ./
COPY apps ./apps
COPY libs ./libs
COPY migrations ./migrations
RUN npx nest build api

FROM node:24.21.0-slim AS packages
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# The optional packages are the embedded PostgreSQL: here DATABASE_URL names the database.
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM node:24.21.0-slim
LABEL org.opencontainers.image.title="Waybill" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production \
    WAYBILL_HOST=0.0.0.0
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=packages /src/node_modules ./node_modules
COPY --from=build /src/dist ./dist
COPY docs/reference/openapi.json docs/reference/openapi.html ./docs/reference/
USER node
EXPOSE 8420 8421
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WAYBILL_PORT || 8420}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/apps/api/src/main.js"]
