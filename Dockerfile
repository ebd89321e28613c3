# arcfleet with the extras for planners; the learned methods need torch and are left out.
#   docker build -t arcfleet .
#   docker run --rm -v "$PWD:/data" arcfleet solve example:denver --time 10 --html map.html
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python -m venv /opt/arcfleet \
    && /opt/arcfleet/bin/pip install --no-cache-dir -c /source/constraints.txt \
        "/source[maps,plot,sheets]"

FROM python:3.12-slim
COPY --from=build /opt/arcfleet /opt/arcfleet
RUN useradd --create-home planner
USER planner
WORKDIR /data
ENV PATH="/opt/arcfleet/bin:$PATH"
ENTRYPOINT ["arcfleet"]
CMD ["--help"]
